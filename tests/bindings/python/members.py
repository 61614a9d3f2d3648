# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A group whose members are threads of the test."""
import threading

import weir

PATIENCE_S = 120  # limit of every wait


def meet(listener, member, size, **options):
    """One member of a group whose member 0 is at the listener."""
    if member == 0:
        return weir.lead(listener, size, PATIENCE_S)
    return weir.join(listener.address, member, size, timeout=PATIENCE_S, **options)


def together(work, size, **options):
    """Runs work(group) as each member. Returns all results, or raises an exception of a member."""
    results, errors = [None] * size, []

    def run(member, listener):
        try:
            with meet(listener, member, size, **options) as group:
                results[member] = work(group)
        except BaseException as error:
            errors.append(error)

    with weir.listen("127.0.0.1:0", **options) as listener:
        threads = [threading.Thread(target=run, args=(member, listener)) for member in range(size)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if errors:
        raise errors[0]
    return results
