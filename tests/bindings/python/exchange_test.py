# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Exchanges from Python, between two threads and between two processes."""
import ctypes
import errno
import inspect
import os
import pathlib
import queue
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock

import weir
from weir import _library, _memory, _options

try:
    import hypothesis
    from hypothesis import strategies
except ImportError:
    hypothesis = None
try:
    import numpy
except ImportError:
    numpy = None
try:
    import torch
except ImportError:
    torch = None

PATIENCE_S = 120  # limit of every wait


def pair(**options):
    """Two ends of one exchange."""
    with weir.listen("127.0.0.1:0", **options) as listener:
        accepted = []
        thread = threading.Thread(target=lambda: accepted.append(listener.accept(PATIENCE_S)))
        thread.start()
        try:
            ours = weir.connect(listener.address, **options)
        finally:
            thread.join()
    return ours, accepted[0]


def peer(code, address, mode="bitmap"):
    """Another process with one end, as x."""
    program = f"import weir, sys\nx = weir.connect({address!r}, slots=8, mode={mode!r})\n{code}"
    return subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def find_all(x):
    """Finds, without taking, all messages of the peer's last flush(), by a new poll of the
    bitmap."""
    limit, looks = time.monotonic() + PATIENCE_S, x.info.bitmap_reads
    x.process()
    slots = x.acquire(x.info.slots, PATIENCE_S)
    # then the first of these polls has returned
    while x.info.mode == "bitmap" and x.info.bitmap_reads < looks + 2:
        assert time.monotonic() < limit, "it does not look"
        try:
            x.acquire(1, 0.05)
        except TimeoutError:
            pass
    x.abandon(slots)


class Interleaving:
    """Both ends of an exchange in one thread; neither end waits."""
    STEPS = ("put", "acquire", "commit", "flush", "take", "release", "ask")

    def __init__(self, mode, slots, unordered):
        self.ours, self.theirs = pair(mode=mode, slots=slots, slot_bytes=64, unordered=unordered)
        self.unordered = unordered
        self.acquired, self.held = [], []
        self.sent, self.taken = [], []

    def message(self):
        return b"%d" % len(self.sent)

    def put(self, count):
        try:
            for _ in range(count):
                self.ours.put(self.message(), 0)
                self.sent.append(self.message())
        except TimeoutError:
            pass

    def acquire(self, count):
        try:
            self.acquired += self.ours.acquire(count, 0)
        except TimeoutError:
            pass

    def commit(self, count):
        chosen, self.acquired = self.acquired[:count], self.acquired[count:]
        for slot in chosen:
            message = self.message()
            slot.data[:len(message)] = message
            slot.length = len(message)
            self.sent.append(message)
        self.ours.commit(chosen)

    def flush(self, _):
        try:
            self.ours.flush(0)
        except TimeoutError:
            pass

    def take(self, count):
        """Returns False at the end."""
        try:
            found = self.theirs.take(count, 0)
        except TimeoutError:
            return True
        self.held += found
        self.taken += [bytes(slot.data) for slot in found]
        assert len(set(self.taken)) == len(self.taken), "one came twice"
        assert set(self.taken) <= set(self.sent), "one came that was not sent"
        assert (
            self.unordered or self.taken == self.sent[: len(self.taken)]
        ), "one came before its turn"
        return bool(found)

    def release(self, count):
        """Releases the last taken slots first, so that slots are used out of order."""
        self.theirs.release(self.held[-count:])
        del self.held[-count:]

    def ask(self, count):
        (self.ours if count % 2 else self.theirs).process()

    def end(self):
        self.commit(len(self.acquired))
        limit, is_finished, goes_on = time.monotonic() + PATIENCE_S, False, True
        while not is_finished or goes_on:
            assert time.monotonic() < limit, "there is no end"
            goes_on = goes_on and self.take(9)
            self.release(9)
            try:
                self.ours.finish(0)
                is_finished = True
            except TimeoutError:
                pass
        assert len(self.taken) == len(self.sent), "one was lost"

    def run(self, steps):
        with self.ours, self.theirs:
            for step, count in steps:
                getattr(self, step)(count)
            self.end()


class Messages(unittest.TestCase):
    @unittest.skipUnless(hypothesis, "needs python3-hypothesis")
    def test_nothing_is_lost_doubled_or_out_of_order_in_any_interleaving(self):

        @hypothesis.settings(max_examples=20, deadline=None, database=None, derandomize=True)
        @hypothesis.given(
            mode=strategies.sampled_from(("bitmap", "imm")),
            slots=strategies.integers(1, 9),
            unordered=strategies.booleans(),
            steps=strategies.lists(
                strategies.tuples(
                    strategies.sampled_from(Interleaving.STEPS), strategies.integers(1, 9)
                ),
                max_size=60,
            ),
        )
        def interleave(mode, slots, unordered, steps):
            Interleaving(mode, slots, unordered).run(steps)
        interleave()

    def test_messages_of_any_length_arrive_in_order(self):
        for mode in ("bitmap", "imm"):
            ours, theirs = pair(mode=mode, slots=8, slot_bytes=4096)
            messages = [bytes([n % 251]) * n for n in (0, 1, 4095, 4096, 4097, 100000)] * 3
            with ours, theirs:
                def send():
                    for message in messages:
                        ours.put(message, PATIENCE_S)
                    ours.finish(PATIENCE_S)
                thread = threading.Thread(target=send)
                thread.start()
                self.assertEqual(list(theirs), messages)
                thread.join()
                self.assertEqual(theirs.info.bytes_taken, sum(map(len, messages)))
                self.assertEqual(theirs.info.mode, mode)

    def test_without_order_each_message_arrives_once(self):
        for mode in ("bitmap", "imm"):
            ours, theirs = pair(mode=mode, slots=8, slot_bytes=4096, unordered=True)
            messages = {bytes([n]) * (n + 1) for n in range(200)}
            with ours, theirs:
                with self.assertRaises(OSError) as refused:
                    ours.put(bytes(4097), PATIENCE_S)
                self.assertEqual(refused.exception.errno, errno.EMSGSIZE)

                def send():
                    for message in messages:
                        ours.put(message, PATIENCE_S)
                    ours.finish(PATIENCE_S)
                thread = threading.Thread(target=send)
                thread.start()
                got = list(theirs)
                thread.join()
                self.assertEqual(len(got), len(messages))
                self.assertEqual(set(got), messages)

    def test_a_message_goes_into_a_buffer(self):
        ours, theirs = pair(slots=8, slot_bytes=64)
        with ours, theirs:
            ours.put(b"x" * 100)
            ours.put(b"y" * 100)
            thread = threading.Thread(target=ours.finish, args=(PATIENCE_S,))
            thread.start()
            buffer = bytearray(100)
            self.assertEqual(theirs.get_into(buffer, PATIENCE_S), 100)
            self.assertEqual(buffer, b"x" * 100)
            with self.assertRaises(OSError) as caught:
                theirs.get_into(bytearray(99), PATIENCE_S)
            self.assertEqual(caught.exception.errno, errno.EMSGSIZE)
            with self.assertRaises(EOFError):
                theirs.get_into(buffer, PATIENCE_S)
            thread.join()

    def test_a_message_that_does_not_fit_continues_later(self):
        ours, theirs = pair(slots=2, slot_bytes=64)
        with ours, theirs:
            message = os.urandom(64 * 5)
            with self.assertRaises(TimeoutError) as caught:
                ours.put(message, 0)
            done = caught.exception.done
            self.assertEqual(done, 128)

            def rest():
                ours.put(message[done:], PATIENCE_S)
                ours.flush(PATIENCE_S)

            thread = threading.Thread(target=rest)
            thread.start()
            self.assertEqual(theirs.get(PATIENCE_S), message)
            thread.join()

    def test_an_interrupted_message_goes_on_later(self):
        class Interrupt(BaseException):
            pass

        def interrupt(*_):
            raise Interrupt

        def interrupt_when_full():
            while ours.info.put < 2:
                time.sleep(0.001)
            signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)

        ours, theirs = pair(slots=2, slot_bytes=64)
        with ours, theirs:
            message = os.urandom(64 * 5)
            before = signal.signal(signal.SIGUSR1, interrupt)
            thread = threading.Thread(target=interrupt_when_full)
            thread.start()
            try:
                with self.assertRaises(Interrupt) as caught:
                    ours.put(message, PATIENCE_S)
            finally:
                thread.join()
                signal.signal(signal.SIGUSR1, before)
            done = caught.exception.done
            self.assertEqual(done, 128)
            got = []
            thread = threading.Thread(target=lambda: got.append(theirs.get(PATIENCE_S)))
            thread.start()
            ours.put(message[done:], PATIENCE_S)
            ours.flush(PATIENCE_S)
            thread.join()
            self.assertEqual(got, [message])

    def test_data_kept_back_by_an_interrupt_is_found_by_the_next_call(self):
        """The interrupt comes as soon as a C function returns, in each step of a call."""
        class Interrupted:
            def __init__(self, step, count):
                self.step, self.left = step, count

            def __getattr__(self, name):
                function = getattr(_library.lib, name)
                if name != "weir_exchange_" + self.step:
                    return function

                def interrupted(*args):
                    status = function(*args)
                    if status >= 0:  # not after a timeout
                        self.left -= 1
                        if not self.left:
                            raise KeyboardInterrupt
                    return status

                return interrupted

        def twice(x, step, count, call):
            interrupted = Interrupted(step, count)
            x._turns.waiting += 1  # so that process() is called, too
            with unittest.mock.patch("weir.exchange.lib", interrupted):
                with self.assertRaises(KeyboardInterrupt):
                    call()
            x._turns.waiting -= 1
            self.assertEqual(interrupted.left, 0)
            return call()

        ours, theirs = pair(slots=8, slot_bytes=64)
        with ours, theirs:
            for step in "take", "release", "process":
                for count in 1, 2, 3:
                    message = os.urandom(64 * 3)
                    for sent in message, b"", b"next":
                        ours.put(sent, PATIENCE_S)
                        ours.flush(PATIENCE_S)
                    got = twice(theirs, step, count, lambda: theirs.get(PATIENCE_S))
                    self.assertEqual(got, message, (step, count))
                    self.assertEqual(theirs.get(PATIENCE_S), b"")
                    self.assertEqual(theirs.get(PATIENCE_S), b"next")
            for step in "take", "process":
                ours.put(os.urandom(64 * 2), PATIENCE_S)
                ours.flush(PATIENCE_S)
                slots = twice(theirs, step, 1, lambda: theirs.take(2, PATIENCE_S))
                while len(slots) < 2:
                    slots += theirs.take(2, PATIENCE_S)
                self.assertEqual(len(slots), 2)
                theirs.release(slots)
            for step in "acquire", "process":
                slots = twice(ours, step, 1, lambda: ours.acquire(8, PATIENCE_S))
                while len(slots) < 8:
                    slots += ours.acquire(8, PATIENCE_S)
                self.assertEqual(len({slot._number for slot in slots}), 8)
                ours.abandon(slots)
            ours.put(b"all is well", PATIENCE_S)
            ours.flush(PATIENCE_S)
            self.assertEqual(theirs.get(PATIENCE_S), b"all is well")

    def test_an_interrupted_thread_stops_watching(self):
        def interrupt():
            raise KeyboardInterrupt

        ours, theirs = pair()
        with ours, theirs:
            with unittest.mock.patch("select.poll", interrupt):
                with self.assertRaises(KeyboardInterrupt):
                    theirs.get(PATIENCE_S)
            with theirs._turns:
                self.assertTrue(theirs._turns.is_to_watch(self))
            theirs._turns.leave(self)

    def test_nothing_there_is_a_timeout(self):
        ours, theirs = pair()
        with ours, theirs:
            for timeout in (0, 0.25):
                with self.assertRaises(TimeoutError):
                    theirs.get(timeout)
                with self.assertRaises(TimeoutError):
                    theirs.get_into(bytearray(8), timeout)

    def test_a_message_that_comes_slowly_has_one_deadline(self):
        for is_into in (False, True):
            ours, theirs = pair(slot_bytes=64)
            is_over, parts_max = threading.Event(), 500
            parts = []

            def trickle():
                while not parts or not parts[-1]:
                    (slot,) = ours.acquire(1, PATIENCE_S)
                    slot.length, slot.last = 1, is_over.is_set() or len(parts) == parts_max
                    parts.append(slot.last)
                    ours.commit([slot])
                    ours.flush(PATIENCE_S)
                    time.sleep(0.02)

            with ours, theirs, self.subTest(is_into=is_into):
                buffer = bytearray(parts_max + 1)
                thread = threading.Thread(target=trickle)
                thread.start()
                try:
                    with self.assertRaisesRegex(TimeoutError, "not within 0.2 s"):
                        _ = theirs.get_into(buffer, 0.2) if is_into else theirs.get(0.2)
                finally:
                    is_over.set()
                length = (
                    theirs.get_into(buffer, PATIENCE_S) if is_into else len(theirs.get(PATIENCE_S))
                )
                thread.join()
                self.assertEqual(length, len(parts))

    def test_an_event_loop_hears_of_messages(self):
        ours, theirs = pair()
        with ours, theirs:
            while theirs.process():
                theirs.release(theirs.take(timeout=PATIENCE_S))
            ours.put(b"now")
            ours.flush(PATIENCE_S)
            while not theirs.process():
                select.select([theirs], [], [], PATIENCE_S)
            self.assertEqual(theirs.get(0), b"now")


    def test_messages_are_taken_one_at_a_time_however_they_are_got(self):
        ours, theirs = pair(slots=8)
        with ours, theirs:
            for number in range(4):
                ours.put(b"%d" % number)
            ours.flush(PATIENCE_S)
            self.assertEqual(theirs.get(PATIENCE_S), b"0")
            self.assertEqual(theirs.info.taken, 1)
            with self.assertRaises(TimeoutError):
                ours.finish(0.25)
            buffer = bytearray(1)
            self.assertEqual(theirs.get_into(buffer, PATIENCE_S), 1)
            self.assertEqual(buffer, b"1")
            (slot,) = theirs.take(1, PATIENCE_S)
            self.assertEqual(bytes(slot.data), b"2")
            theirs.release([slot])
            self.assertEqual(theirs.get(PATIENCE_S), b"3")


class Threads(unittest.TestCase):
    def test_waiting_for_messages_does_not_block_put(self):
        """If get() blocked put(), each reply would take a tenth of a second; on a busy machine some
        may."""
        for mode in ("bitmap", "imm"):
            ours, theirs = pair(mode=mode)
            answers = queue.SimpleQueue()

            def hear():
                for answer in ours:
                    answers.put(answer)

            def answer():
                for question in theirs:
                    theirs.put(question)
                    theirs.flush(PATIENCE_S)
                theirs.finish(PATIENCE_S)

            threads = [threading.Thread(target=target) for target in (hear, answer)]
            with ours, theirs:
                for thread in threads:
                    thread.start()
                took = []
                for number in range(200):
                    begin = time.monotonic()
                    ours.put(b"%d" % number)
                    ours.flush(PATIENCE_S)
                    self.assertEqual(answers.get(timeout=PATIENCE_S), b"%d" % number)
                    took.append(time.monotonic() - begin)
                self.assertLess(sorted(took)[len(took) // 4], 0.1)
                ours.finish(PATIENCE_S)
                for thread in threads:
                    thread.join()

    def test_both_ways_at_once_and_full_pools_lose_nothing(self):
        for mode in ("bitmap", "imm"):
            ends = pair(mode=mode, slots=3, slot_bytes=64)
            got = [[], []]

            def send(end):
                for number in range(300):
                    end.put(b"%d" % number * 40, PATIENCE_S)
                end.finish(PATIENCE_S)

            threads = [threading.Thread(target=send, args=(end,)) for end in ends]
            threads += [
                threading.Thread(target=got[i].extend, args=(end,)) for i, end in enumerate(ends)
            ]
            with ends[0], ends[1]:
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
            self.assertEqual(got, [[b"%d" % number * 40 for number in range(300)]] * 2)

    def test_a_message_of_many_slots_stays_whole_beside_other_threads(self):
        ours, theirs = pair(slots=4, slot_bytes=64)
        got = [[], []]

        def send(letter):
            for _ in range(50):
                ours.put(letter * 1000, PATIENCE_S)

        senders = [threading.Thread(target=send, args=(letter,)) for letter in (b"a", b"b")]
        takers = [threading.Thread(target=one.extend, args=(theirs,)) for one in got]
        with ours, theirs:
            for thread in senders + takers:
                thread.start()
            for thread in senders:
                thread.join()
            ours.finish(PATIENCE_S)
            for thread in takers:
                thread.join()
        self.assertEqual(sorted(got[0] + got[1]), [b"a" * 1000] * 50 + [b"b" * 1000] * 50)

    def test_a_waiting_call_ends_when_the_exchange_is_closed(self):
        ours, theirs = pair()
        errors = []

        def wait():
            try:
                ours.get()
            except ValueError as error:
                errors.append(str(error))

        thread = threading.Thread(target=wait)
        with theirs:
            thread.start()
            time.sleep(0.1)  # most likely asleep by now
            ours.close()
            thread.join()
        self.assertEqual(errors, ["the exchange is closed"])


    def test_accept_does_not_block_other_calls_on_the_listener(self):
        accepted = []
        with weir.listen("127.0.0.1:0") as listener:
            waiter = threading.Thread(target=lambda: accepted.append(listener.accept(PATIENCE_S)))
            waiter.start()
            for _ in range(5):
                address = listener.address
            self.assertTrue(waiter.is_alive())
            with weir.connect(address):
                waiter.join()
        accepted[0].close()

    def test_accept_ends_when_the_listener_is_closed(self):
        errors = []

        def wait(listener):
            try:
                listener.accept()
            except ValueError as error:
                errors.append(str(error))

        listener = weir.listen("127.0.0.1:0")
        threads = [threading.Thread(target=wait, args=(listener,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        time.sleep(0.05)  # most likely waiting by now
        listener.close()
        for thread in threads:
            thread.join()
        self.assertEqual(errors, ["the listener is closed"] * 3)
        with self.assertRaisesRegex(ValueError, "closed"):
            _ = listener.address


class Slots(unittest.TestCase):
    def test_slots_are_written_and_read_where_they_lie(self):
        ours, theirs = pair(slots=4, slot_bytes=256)
        with ours, theirs:
            first, second = ours.acquire(2, PATIENCE_S)
            first.data[:] = bytes(range(256))
            first.last = False
            second.data[:3] = b"end"
            second.length = 3
            unsent = ours.acquire(1, PATIENCE_S)
            ours.abandon(unsent)
            ours.commit([first, second])
            ours.flush(PATIENCE_S)
            found = theirs.take(timeout=PATIENCE_S)
            found += theirs.take(timeout=PATIENCE_S) if len(found) < 2 else []
            self.assertEqual([bytes(slot.data) for slot in found], [bytes(range(256)), b"end"])
            self.assertEqual([slot.last for slot in found], [False, True])
            theirs.release(found)

    def test_a_slot_that_was_given_away_cannot_be_reached(self):
        ours, theirs = pair(slots=2)
        with ours, theirs:
            (slot,) = ours.acquire()
            slot.length = 1
            kept = slot.data
            ours.commit([slot])
            with self.assertRaises(ValueError):
                kept[0] = 1
            with self.assertRaises(ValueError):
                ours.commit([slot])
            with self.assertRaises(ValueError):
                ours.release([slot])
            ours.flush(PATIENCE_S)
            (taken,) = theirs.take(timeout=PATIENCE_S)
            with self.assertRaises(ValueError):
                theirs.commit([taken])
            for look in (
                memoryview(taken.data),
                taken.data[:1],
                ctypes.c_char.from_buffer(taken.data),
            ):
                for give_up in (lambda: theirs.release([taken]), theirs.close):
                    with self.assertRaises(BufferError):
                        give_up()
                self.assertEqual(bytes(look), bytes(taken.data))
                del look
            theirs.release([taken])

    def test_a_slot_that_came_as_the_exchange_was_closed_cannot_be_reached(self):
        for taken in (False, True):
            ours, theirs = pair()
            with ours, theirs:
                ours.put(b"x")
                ours.flush(PATIENCE_S)
                x = theirs if taken else ours
                in_turn = x._call

                def call(function, *args, x=x, in_turn=in_turn):
                    result = in_turn(function, *args)
                    if result == 1:  # now another thread may have its turn
                        x.close()
                    return result

                x._call = call
                (slot,) = x.take(1, PATIENCE_S) if taken else x.acquire(1, PATIENCE_S)
                with self.assertRaises(ValueError):
                    bytes(slot.data)

    def test_a_slot_goes_once_in_one_call(self):
        ours, theirs = pair(slots=2)
        with ours, theirs:
            slots = ours.acquire(2, PATIENCE_S)
            for give in (ours.commit, ours.abandon):
                with self.assertRaisesRegex(ValueError, "twice"):
                    give([slots[0], slots[1], slots[0]])
            self.assertEqual(ours.info.put, 0)
            for slot in slots:
                slot.data[:1] = b"x"
                slot.length = 1
            ours.commit(slots)
            ours.flush(PATIENCE_S)
            self.assertEqual([theirs.get(PATIENCE_S) for _ in slots], [b"x"] * 2)

    def test_slots_that_are_refused_can_still_be_sent_or_abandoned(self):
        ours, theirs = pair(slots=2, unordered=True)
        with ours, theirs:
            slots = ours.acquire(2, PATIENCE_S)
            for slot in slots:
                slot.data[:1] = b"x"
                slot.length = 1
            slots[1].last = False  # a message has one slot here
            with self.assertRaises(OSError) as caught:
                ours.commit(slots)
            self.assertEqual(caught.exception.errno, errno.EMSGSIZE)
            self.assertEqual(ours.info.put, 0)
            slots[0].data[:1] = b"y"
            ours.commit(slots[:1])
            ours.abandon(slots[1:])
            ours.flush(PATIENCE_S)
            self.assertEqual(theirs.get(PATIENCE_S), b"y")
            ours.abandon(ours.acquire(1, PATIENCE_S))

    def test_a_length_beyond_the_slot_is_refused(self):
        ours, theirs = pair(slot_bytes=64)
        with ours, theirs:
            (slot,) = ours.acquire()
            for length in (-1, 65):
                slot.length = length
                with self.assertRaises(ValueError):
                    ours.commit([slot])
            ours.abandon([slot])


class Arrays(unittest.TestCase):
    @unittest.skipUnless(numpy, "NumPy is not installed")
    def test_numpy_arrays_are_not_copied(self):
        array = numpy.arange(1000, dtype="float32")
        memory, length = _memory.memory_of(array)
        self.assertEqual(
            (int(_library.ffi.cast("uintptr_t", memory)), length), (array.ctypes.data, array.nbytes)
        )
        ours, theirs = pair(slots=4)
        with ours, theirs:
            ours.put(array)
            ours.flush(PATIENCE_S)
            (slot,) = theirs.take(timeout=PATIENCE_S)
            found = numpy.frombuffer(slot.data, dtype="float32")
            self.assertTrue((found == array).all())
            del found
            theirs.release([slot])
            with self.assertRaises(ValueError):
                ours.put(array[::2])

    @unittest.skipUnless(torch, "PyTorch is not installed")
    def test_tensors_of_any_type_are_not_copied(self):
        for kind in (torch.float32, torch.bfloat16, torch.bool, torch.int64):
            tensor = torch.ones(10, 7).to(kind)
            memory, length = _memory.memory_of(tensor, writable=True)
            self.assertEqual(int(_library.ffi.cast("uintptr_t", memory)), tensor.data_ptr())
            self.assertEqual(length, tensor.numel() * tensor.element_size())
        part = tensor[3:5]
        self.assertEqual(
            int(_library.ffi.cast("uintptr_t", _memory.memory_of(part)[0])), part.data_ptr()
        )
        with self.assertRaises(ValueError):
            _memory.memory_of(tensor.t())

    @unittest.skipUnless(torch, "PyTorch is not installed")
    def test_a_tensor_goes_into_a_tensor(self):
        ours, theirs = pair(slots=4)
        with ours, theirs:
            ours.put(torch.arange(2000))
            ours.flush(PATIENCE_S)
            tensor = torch.zeros(2000, dtype=torch.int64)
            theirs.get_into(tensor, PATIENCE_S)
            self.assertTrue(torch.equal(tensor, torch.arange(2000)))

    @unittest.skipUnless(torch, "PyTorch is not installed")
    def test_parameters_of_a_model_are_tensors(self):
        parameter = torch.nn.Linear(3, 2).weight
        ours, theirs = pair(slots=4)
        with ours, theirs:
            ours.put(parameter)
            ours.flush(PATIENCE_S)
            other = torch.nn.Linear(3, 2).weight
            theirs.get_into(other, PATIENCE_S)
            self.assertTrue(torch.equal(other, parameter))

    def test_an_object_without_memory_is_refused(self):
        with self.assertRaises(TypeError):
            _memory.memory_of("text")
        with self.assertRaises(ValueError):
            _memory.memory_of(b"constant", writable=True)


class Ends(unittest.TestCase):
    def test_a_peer_that_died_is_a_connection_that_is_reset(self):
        with weir.listen("127.0.0.1:0", slots=8) as listener:
            code = "x.put(b'last words'); x.flush(); import time; time.sleep(600)"
            with peer(code, listener.address) as process, listener.accept(PATIENCE_S) as x:
                self.assertEqual(x.get(PATIENCE_S), b"last words")
                process.kill()
                with self.assertRaises(ConnectionResetError):
                    x.get(PATIENCE_S)

    def test_messages_found_before_the_peer_died_are_all_received(self):
        code = """
x.put(b"first"); x.flush(); sys.stdin.readline()
for number in range(4): x.put(b"%d" % number)
x.flush(); print("they are there", flush=True); sys.stdin.readline()
"""
        for mode in ("bitmap", "imm"):
            with weir.listen("127.0.0.1:0", slots=8, mode=mode) as listener:
                with peer(code, listener.address, mode=mode) as process, listener.accept(
                    PATIENCE_S
                ) as x:
                    self.assertEqual(x.get(PATIENCE_S), b"first")
                    process.stdin.write("\n")
                    process.stdin.flush()
                    process.stdout.readline()
                    find_all(x)
                    process.kill()
                    process.wait(PATIENCE_S)
                    with self.assertRaises(ConnectionResetError):
                        x.put(b"is anybody there?", PATIENCE_S)
                        x.finish(PATIENCE_S)
                    self.assertEqual(
                        [x.get(0) for _ in range(4)], [b"%d" % number for number in range(4)]
                    )
                    with self.assertRaises(ConnectionResetError):
                        x.get(0)

    def test_a_sleeping_thread_notices_a_vanished_peer(self):
        with weir.listen("127.0.0.1:0", slots=8) as listener:
            with peer("import time; time.sleep(600)", listener.address) as process, listener.accept(
                PATIENCE_S
            ) as x:
                with self.assertRaises(TimeoutError):
                    x.get(0.25)  # arms the wake-up; the peer need not poll from now on
                subprocess.run([os.environ["WEIR_COMMAND"], "fault", str(process.pid),
                                "port_down_ms=600000,port_down_after=0"], check=True)
                with self.assertRaises(ConnectionResetError):
                    x.get(PATIENCE_S)
                process.kill()

    def test_an_interrupt_ends_a_wait(self):
        with weir.listen("127.0.0.1:0", slots=8) as listener:
            with peer("print('waiting', flush=True); x.get()", listener.address) as process, \
                    listener.accept(PATIENCE_S):
                process.stdout.readline()
                process.send_signal(signal.SIGINT)
                self.assertIn("KeyboardInterrupt", process.communicate(timeout=PATIENCE_S)[1])

    def test_connecting_without_a_listener_fails(self):
        with weir.listen("127.0.0.1:0") as listener:
            address = listener.address
        with self.assertRaises(ConnectionRefusedError) as caught:
            weir.connect(address)
        self.assertIn(address, str(caught.exception))

    def test_a_closed_object_raises(self):
        ours, theirs = pair()
        theirs.close()
        ours.close()
        ours.close()
        for use in (lambda: ours.put(b""), ours.get, lambda: ours.info, ours.fileno):
            with self.assertRaisesRegex(ValueError, "closed"):
                use()

    def test_an_interrupted_close_does_not_close_twice(self):
        closed = []

        class Interrupted:
            def __getattr__(self, name):
                def end(pointer):
                    closed.append(name)
                    getattr(_library.lib, name)(pointer)
                    raise KeyboardInterrupt

                return (
                    end if name.endswith(("_close", "_unlisten")) else getattr(_library.lib, name)
                )

        ours, theirs = pair()
        listener = weir.listen("127.0.0.1:0")
        for module, held in (("weir.exchange", ours), ("weir.listener", listener)):
            with unittest.mock.patch(module + ".lib", Interrupted()):
                with self.assertRaises(KeyboardInterrupt):
                    held.close()
                held.close()
        theirs.close()
        self.assertEqual(closed, ["weir_exchange_close", "weir_exchange_unlisten"])

    def test_a_thread_in_a_call_cannot_close_the_exchange(self):
        ours, theirs = pair()
        with ours._turns:
            with self.assertRaisesRegex(RuntimeError, "in the middle of a call"):
                ours.close()
        theirs.put(b"still there")
        theirs.flush(PATIENCE_S)
        self.assertEqual(ours.get(PATIENCE_S), b"still there")
        for end in ours, theirs:
            end.close()

    def test_ends_without_the_same_key_do_not_meet(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("one", "two"):
                weir.Key.create(os.path.join(folder, name))
            one, two = (weir.Key(os.path.join(folder, name)) for name in ("one", "two"))
            with self.assertRaises(FileExistsError):
                weir.Key.create(os.path.join(folder, "one"))
            with weir.listen("127.0.0.1:0", key=one) as listener:
                refused = []

                def connect():
                    try:
                        weir.connect(listener.address, key=two)
                    except OSError as error:
                        refused.append(error.errno)

                thread = threading.Thread(target=connect)
                thread.start()
                while thread.is_alive():
                    with self.assertRaises(TimeoutError):
                        listener.accept(0.1)
                self.assertEqual(refused, [errno.EKEYREJECTED])
            ours, theirs = pair(key=one)
            with ours, theirs:
                ours.put(b"between us")
                ours.flush(PATIENCE_S)
                self.assertEqual(theirs.get(PATIENCE_S), b"between us")

    def test_an_end_trusts_the_listener_that_it_names(self):
        with tempfile.TemporaryDirectory() as folder:
            key, own, other = (os.path.join(folder, name) for name in ("key", "own", "other"))
            weir.Key.create(key)
            for path in own, other:
                weir.Identity.create(path)
            options = {"key": weir.Key(key)}
            own, other = weir.Identity(own), weir.Identity(other)
            self.assertNotEqual(own.public, other.public)
            with weir.listen("127.0.0.1:0", identity=own, **options) as listener:
                accepted = []
                thread = threading.Thread(
                    target=lambda: accepted.append(listener.accept(PATIENCE_S)))
                thread.start()
                with self.assertRaises(OSError) as caught:
                    weir.connect(listener.address, peer_identity=other.public, **options)
                self.assertEqual(caught.exception.errno, errno.EKEYREJECTED)
                with weir.connect(listener.address, peer_identity=own.public, **options):
                    thread.join(PATIENCE_S)
                    self.assertEqual(len(accepted), 1)
                    accepted[0].close()
            with self.assertRaisesRegex(ValueError, "31 bytes"):
                weir.connect("127.0.0.1:1", peer_identity=bytes(31))

    def test_options_that_make_no_sense_are_named(self):
        with self.assertRaisesRegex(ValueError, "'smoke'"):
            weir.listen(mode="smoke")
        with self.assertRaises(TypeError):
            weir.listen(speed=1)
        with self.assertRaises(OSError) as caught:
            weir.listen("127.0.0.1:0", slots=100000)
        self.assertEqual(caught.exception.errno, errno.EINVAL)
        with self.assertRaises(FileNotFoundError):
            weir.Key(pathlib.Path("/nonexistent/key"))


class Contract(unittest.TestCase):
    def test_info_has_the_fields_of_the_header(self):
        fields = [name for name, _ in _library.ffi.typeof("struct weir_exchange_info").fields]
        self.assertEqual(["size", *weir.Info._fields], fields)

    def test_options_are_those_of_the_header(self):
        fields = {name for name, _ in _library.ffi.typeof("struct weir_exchange_options").fields}
        options = inspect.signature(_options.options_of).parameters
        asked = {"size", "goes_on", "goes_on_arg"}  # set by Python itself
        self.assertEqual(
            {name.replace("timeout", "timeout_ns") for name in options}, fields - asked
        )
        self.assertEqual(
            _options.Options.__annotations__.keys(), options.keys(), "for checkers of types"
        )
        for function in (weir.listen, weir.connect, weir.join):
            own = inspect.signature(function).parameters.values()
            self.assertEqual(
                {
                    one.name: (one.default, one.annotation)
                    for one in own
                    if one.kind == one.KEYWORD_ONLY
                },
                {name: (one.default, one.annotation) for name, one in options.items()},
            )
        for name in options:
            self.assertRegex(weir.listen.__doc__, rf"\b{name}\b")


if __name__ == "__main__":
    unittest.main()
