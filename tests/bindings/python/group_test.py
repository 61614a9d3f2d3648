# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Groups from Python, each member a thread; and torch.distributed, each rank a process."""
import concurrent.futures
import errno
import os
import socket
import subprocess
import sys
import threading
import unittest

import weir
from members import PATIENCE_S, meet, together

try:
    import torch
except ImportError:
    torch = None

SIZE = 3


def add_bytes(into, other):
    for i, value in enumerate(other):
        into[i] = (into[i] + value) % 256


class Operations(unittest.TestCase):
    def test_a_broadcast_reaches_all(self):
        for length in (0, 1, 100000):
            for mode in ("bitmap", "imm"):
                def work(group):
                    data = bytearray(length) if group.member != 1 else bytearray(b"x" * length)
                    group.broadcast(data, 1, PATIENCE_S)
                    return data
                self.assertEqual(together(work, SIZE, slots=8, mode=mode), [b"x" * length] * SIZE)

    def test_a_gather_keeps_the_order_of_members(self):
        def work(group):
            into = bytearray(SIZE * 5000) if group.member == 2 else None
            group.gather(bytes([group.member]) * 5000, into, 2, PATIENCE_S)
            every = bytearray(SIZE)
            group.all_gather(bytes([10 + group.member]), every, PATIENCE_S)
            return into, every
        results = together(work, SIZE, slots=4, slot_bytes=512)
        self.assertEqual(results[2][0], b"".join(bytes([i]) * 5000 for i in range(SIZE)))
        self.assertEqual([every for _, every in results], [bytes([10, 11, 12])] * SIZE)

    def test_a_sum_is_made_in_the_order_of_members(self):
        def tell(into, other):
            into[:] = bytes([into[0] * 10 % 256 + other[0]]) * len(into)

        def work(group):
            part = bytearray(3000)
            group.reduce_scatter(bytes([group.member + 1]) * 9000, part, tell, PATIENCE_S)
            return part
        self.assertEqual(
            together(work, SIZE, slots=4, slot_bytes=512), [bytes([123]) * 3000] * SIZE
        )

    def test_many_operations_follow_each_other(self):
        def work(group):
            total = 0
            for turn in range(50):
                data = bytearray([turn]) * 700 if turn % SIZE == group.member else bytearray(700)
                group.broadcast(data, turn % SIZE, PATIENCE_S)
                part = bytearray(10)
                group.reduce_scatter(bytes([turn]) * 30, part, add_bytes, PATIENCE_S)
                total += data[699] + part[9]
            return total
        expected = sum(turn + turn * SIZE % 256 for turn in range(50))
        self.assertEqual(together(work, SIZE, slots=2, slot_bytes=256), [expected] * SIZE)

    def test_a_group_of_one_never_waits(self):
        def work(group):
            part = bytearray(4)
            group.broadcast(bytearray(4))
            group.reduce_scatter(b"abcd", part, add_bytes)
            return bytes(part)
        self.assertEqual(together(work, 1), [b"abcd"])

    def test_an_operation_goes_on_after_a_timeout(self):
        late = threading.Event()

        def work(group):
            data = bytearray(b"late" if group.member == 0 else b"    ")
            if group.member == 0:
                late.wait(PATIENCE_S)
                group.broadcast(data, 0, PATIENCE_S)
            elif group.member == 1:
                with self.assertRaises(TimeoutError):
                    group.broadcast(data, 0, 0.05)
                with self.assertRaises(OSError) as caught:
                    group.barrier(0)
                self.assertEqual(caught.exception.errno, errno.EBUSY)
                late.set()
                group.wait(PATIENCE_S)
            else:
                group.broadcast(data, 0, PATIENCE_S)
            return data
        self.assertEqual(together(work, SIZE), [b"late"] * SIZE)

    def test_a_waiting_call_does_not_block_queries(self):
        asked = threading.Event()

        def work(group):
            if group.member != 0:
                asked.wait(PATIENCE_S)
                group.barrier(PATIENCE_S)
                return
            waiter = threading.Thread(target=group.barrier, args=(PATIENCE_S,))
            waiter.start()
            for _ in range(5):
                group.info(1)
            self.assertTrue(waiter.is_alive())
            asked.set()
            waiter.join()
        together(work, SIZE)


class Memory(unittest.TestCase):
    SIZE, POOL, SLOT = 4, 6 << 20, 1 << 16

    @staticmethod
    def slots(group):
        """Of each exchange, to send from and to receive in."""
        infos = [group.info(member) for member in range(group.size)]
        return [(info.slots, info.peer_slots) for info in infos if info]

    def test_the_exchanges_of_each_member_share_one_pool(self):
        for slots in together(self.slots, self.SIZE, slot_bytes=self.SLOT, pool_bytes=self.POOL):
            self.assertEqual(slots, [(15, 15)] * (self.SIZE - 1))
            self.assertLessEqual(sum(map(sum, slots)) * self.SLOT, self.POOL)

    def test_an_explicit_number_of_exchanges_is_used(self):
        for slots in together(
            self.slots, self.SIZE, slot_bytes=self.SLOT, pool_bytes=self.POOL, exchanges=1
        ):
            self.assertEqual(slots, [(47, 47)] * (self.SIZE - 1))

    def test_a_new_exchange_after_the_group_has_the_pool_alone(self):
        with weir.listen("127.0.0.1:0", slot_bytes=self.SLOT, pool_bytes=self.POOL) as listener:
            def join(member):
                with weir.join(listener.address, member, 3, timeout=PATIENCE_S) as group:
                    group.barrier(PATIENCE_S)
            with concurrent.futures.ThreadPoolExecutor() as pool:
                members = [pool.submit(join, member) for member in (1, 2)]
                with weir.lead(listener, 3, PATIENCE_S) as group:
                    group.barrier(PATIENCE_S)
                    self.assertEqual([slots for slots, _ in self.slots(group)], [23, 23])
                for member in members:
                    member.result()
                other = pool.submit(weir.connect, listener.address)
                with listener.accept(PATIENCE_S) as x, other.result():
                    self.assertEqual(x.info.slots, 47)


class Ends(unittest.TestCase):
    def test_a_member_that_leaves_is_named(self):
        listener = weir.listen("127.0.0.1:0")

        def leave():
            with meet(listener, 1, 2) as group:
                group.barrier(PATIENCE_S)

        thread = threading.Thread(target=leave)
        thread.start()
        with listener, meet(listener, 0, 2) as group:
            group.barrier(PATIENCE_S)
            # The member has closed; from then on the group has ended.
            for number in (errno.ENOTCONN, errno.ECONNRESET):
                with self.assertRaisesRegex(OSError, "member 1") as caught:
                    group.gather(b"x", bytearray(2), 0, PATIENCE_S)
                self.assertEqual(caught.exception.errno, number)
        thread.join()

    def test_a_member_that_vanishes_without_a_word_is_named(self):
        # The port goes down with the first message of member 1 from then on.
        program = ("import sys, time, weir\n"
                   "with weir.join(sys.argv[1], 1, 2, timeout=%d, mode=sys.argv[2]) as group:\n"
                   "    sys.stdin.readline()\n"
                   "    try:\n"
                   "        group.gather(b'x', None, 0, 0)\n"
                   "    finally:\n"
                   "        time.sleep(600)\n" % PATIENCE_S)

        def await_in_vain(mode):
            with weir.listen("127.0.0.1:0", mode=mode) as listener:
                process = subprocess.Popen([sys.executable, "-c", program, listener.address, mode],
                                           stdin=subprocess.PIPE)
                try:
                    with weir.lead(listener, 2, PATIENCE_S) as group:
                        with self.assertRaises(TimeoutError):
                            # no polls from now on
                            group.gather(b"x", bytearray(2), 0, 0.25)
                        subprocess.run([os.environ["WEIR_COMMAND"], "fault", str(process.pid),
                                        "port_down_ms=3600000,port_down_after=0"], check=True)
                        process.stdin.write(b"\n")
                        process.stdin.flush()
                        with self.assertRaisesRegex(ConnectionResetError, "member 1"):
                            group.wait(PATIENCE_S)
                finally:
                    process.kill()
                    process.communicate()

        with concurrent.futures.ThreadPoolExecutor() as pool:
            list(pool.map(await_in_vain, ("bitmap", "imm")))

    def test_another_length_ends_the_group(self):
        def work(group):
            with self.assertRaises(OSError) as caught:
                group.all_gather(
                    b"x" * (1 + group.member), bytearray(2 + 2 * group.member), PATIENCE_S
                )
            raise caught.exception
        with self.assertRaises(OSError) as caught:
            together(work, 2)
        self.assertIn(caught.exception.errno, (errno.EPROTO, errno.ENOTCONN, errno.ECONNRESET))

    def test_an_error_in_add_comes_back(self):
        def fail(into, other):
            raise ArithmeticError("no sums today")

        def work(group):
            if group.member == 0:
                with self.assertRaisesRegex(ArithmeticError, "today"):
                    group.reduce_scatter(b"ab", bytearray(1), fail, PATIENCE_S)
            else:
                group.reduce_scatter(b"ab", bytearray(1), add_bytes, PATIENCE_S)
        together(work, 2)

    def test_waiting_for_members_handles_signals(self):
        # A member that has come, and another that never does.
        program = (
            "import signal, sys, threading, weir\n"
            "listener = weir.listen('127.0.0.1:0')\n"
            "if sys.argv[1] == 'join':\n"
            "    wait = lambda: weir.join(listener.address, 1, 3, timeout=%d)\n"
            "    threading.Thread(target=lambda: weir.lead(listener, 3, %d), daemon=True).start()\n"
            "else:\n"
            "    wait = lambda: weir.lead(listener, 2, %d)\n"
            "signal.signal(signal.SIGALRM, signal.default_int_handler)\n"
            "signal.setitimer(signal.ITIMER_REAL, 0.5)\n"
            "try:\n"
            "    wait()\n"
            "except KeyboardInterrupt:\n"
            "    print('heard')\n" % (PATIENCE_S, PATIENCE_S, PATIENCE_S)
        )
        for what in ("lead", "join"):
            done = subprocess.run(
                [sys.executable, "-c", program, what],
                check=True,
                capture_output=True,
                text=True,
                timeout=PATIENCE_S / 2,
            )
            self.assertEqual((done.stdout, done.stderr), ("heard\n", ""), what)

    def test_lead_ends_when_the_listener_is_closed(self):
        for has_come in (False, True):
            listener, errors = weir.listen("127.0.0.1:0"), []

            def lead(listener=listener, errors=errors):
                try:
                    weir.lead(listener, 2, PATIENCE_S)
                except ValueError as error:
                    errors.append(str(error))

            thread = threading.Thread(target=lead)
            thread.start()
            # sends nothing
            other = weir.connect(listener.address, timeout=PATIENCE_S) if has_come else None
            listener.close()
            thread.join()
            self.assertEqual(errors, ["the listener is closed"])
            if other:
                other.close()

    def test_a_signal_may_close_the_listener(self):
        program = ("import signal, weir\n"
                   "listener = weir.listen('127.0.0.1:0')\n"
                   "signal.signal(signal.SIGALRM, lambda *_: listener.close())\n"
                   "signal.setitimer(signal.ITIMER_REAL, 0.3)\n"
                   "try:\n"
                   "    weir.lead(listener, 2, %d)\n"
                   "except ValueError as error:\n"
                   "    print(error)\n" % PATIENCE_S)
        done = subprocess.run(
            [sys.executable, "-c", program],
            check=True,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S / 2,
        )
        self.assertEqual((done.stdout, done.stderr), ("the listener is closed\n", ""))

    def test_nonsense_is_refused_at_once(self):
        for member, size in ((2, 2), (1, 0), (1, 1000)):
            with self.assertRaises(OSError) as caught:
                weir.join("127.0.0.1:9", member, size)
            self.assertEqual(caught.exception.errno, errno.EINVAL)
        with weir.listen("127.0.0.1:0") as listener:
            with self.assertRaisesRegex(OSError, "not all 2 members"):
                weir.lead(listener, 2, 0.2)
            with weir.lead(listener, 1) as group:
                for wrong in (
                    lambda: group.broadcast(bytearray(1), 1),
                    lambda: group.gather(b"a", bytearray(2)),
                ):
                    with self.assertRaises((OSError, ValueError)):
                        wrong()


RANK = """
import os, sys, torch, torch.distributed as dist, weir.distributed
rank, size, backend, port = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
weir.distributed.register(slots=16)
torch.set_num_threads(1)
dist.init_process_group(backend, rank=rank, world_size=size)
"""

COLLECTIVES = RANK + """
def same(found, wanted):
    wanted = torch.as_tensor(wanted, dtype=found.dtype)
    assert torch.equal(found, wanted), (found, wanted)
for kind in (torch.float32, torch.float64, torch.int64, torch.bfloat16):
    t = torch.arange(7).to(kind) * (rank + 1)
    dist.all_reduce(t); same(t, torch.arange(7) * 6)
    t = torch.full((2, 3), rank + 1).to(kind)
    dist.all_reduce(t, dist.ReduceOp.MAX); same(t, torch.full((2, 3), 3))
    dist.reduce(t, 1); same(t, torch.full((2, 3), 9 if rank == 1 else 3))
    t = torch.full((5,), rank).to(kind)
    dist.broadcast(t, 2); same(t, [2] * 5)
t = torch.tensor([rank == 1, True, False])
dist.all_reduce(t); same(t, [True, True, False])
t = torch.tensor([rank == 1, True])
dist.all_reduce(t, dist.ReduceOp.MIN); same(t, [False, True])
t = torch.tensor([rank == 1, False])
dist.broadcast(t, 1); same(t, [True, False])
many = [torch.empty(4) for _ in range(3)]
dist.all_gather(many, torch.full((4,), float(rank)))
same(torch.stack(many), [[0.] * 4, [1.] * 4, [2.] * 4])
many = [torch.empty(2) for _ in range(3)] if rank == 0 else None
dist.gather(torch.full((2,), float(rank)), many)
if rank == 0: same(torch.stack(many), [[0.] * 2, [1.] * 2, [2.] * 2])
part = torch.empty(2)
dist.reduce_scatter(part, [torch.full((2,), float(i)) for i in range(3)])
same(part, [3. * rank] * 2)
transposed = torch.arange(6.).view(2, 3).t() * (rank == 0)
dist.broadcast(transposed, 0); same(transposed, torch.arange(6.).view(2, 3).t())
pair = dist.new_group([0, 2])
if rank != 1:
    t = torch.ones(1) * rank
    dist.all_reduce(t, group=pair); same(t, [2.])
try: dist.all_reduce(torch.ones(1), dist.ReduceOp.BAND); raise SystemExit("BAND was taken")
except ValueError as error: assert "SUM" in str(error)
dist.barrier()
print("fine")
"""

TRAINING = RANK + """
torch.manual_seed(7)
model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.Tanh(), torch.nn.Linear(64, 4))
model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
torch.manual_seed(100 + rank)
for _ in range(15):
    x, y = torch.randn(32, 16), torch.randint(0, 4, (32,))
    loss = torch.nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    print(loss.item().hex())
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@unittest.skipUnless(torch, "PyTorch is not installed")
class Torch(unittest.TestCase):
    def ranks(self, program, size, backend):
        port = str(free_port())
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", program, str(rank), str(size), backend, port],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank in range(size)
        ]
        try:
            outputs = [process.communicate(timeout=PATIENCE_S) for process in processes]
        finally:
            for process in processes:
                process.kill()
        self.assertEqual([process.returncode for process in processes], [0] * size,
                         "\n".join(errors for _, errors in outputs))
        return [output for output, _ in outputs]

    def test_collectives_give_correct_results(self):
        self.assertEqual(self.ranks(COLLECTIVES, 3, "weir"), ["fine\n"] * 3)

    def test_slots_in_a_gpu_are_refused_at_once(self):
        import weir.distributed
        with self.assertRaisesRegex(ValueError, "host memory"):
            weir.distributed.register(memory="cuda")

    def test_training_takes_the_same_steps_as_over_gloo(self):
        """A sum of two gradients does not depend on order, so each loss agrees to the bit."""
        self.assertEqual(self.ranks(TRAINING, 2, "weir"), self.ranks(TRAINING, 2, "gloo"))


if __name__ == "__main__":
    unittest.main()
