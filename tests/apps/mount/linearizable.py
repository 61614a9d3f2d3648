# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Whether a history of calls on names could have happened one call after the other.

A history is a list of calls by several processes: begin, end, question and answer of each. Such a
list is linearizable if each call can take effect at one moment between begin and end, so that every
answer is right. The check walks through the history in the order of time, and keeps each possible
state, with the calls under way that have taken effect.
"""
import collections

Call = collections.namedtuple("Call", "begin end asked answer")

EXISTS, MISSING, DONE = "exists", "missing", "done"


def step(names, asked):
    """The answer to a call in a state, and the state afterwards; a state is {(name, bytes)}."""
    what, name, *rest = asked
    held = dict(names)
    if what == "read":
        return held.get(name, MISSING), names
    if what == "put": # a new file, renamed to the name
        held[name] = rest[0]
    elif what == "link": # a new file, linked to the name
        if name in held:
            return EXISTS, names
        held[name] = rest[0]
    elif name not in held:
        return MISSING, names
    elif what == "unlink":
        del held[name]
    else: # rename
        held[rest[0]] = held.pop(name)
    return DONE, frozenset(held.items())


def _renames_nothing(state, number, asked):
    """Whether a rename may find both its names to be one file, and leave them so."""
    names, _, seen = state
    return asked[0] == "rename" and (number, dict(names).get(asked[2])) in seen


def _looked(calls, pending, names, effective, seen=frozenset()):
    """A state, with the files that pending renames may have found at their first names."""
    held = dict(names)
    found = {(number, held[calls[number].asked[1]]) for number in pending
             if calls[number].asked[0] == "rename" and calls[number].asked[1] in held}
    return names, effective, frozenset(one for one in seen | found if one[0] not in effective)


def _after_each(calls, state, pending):
    """The states after one more pending call."""
    names, effective, seen = state
    for number in pending - effective:
        asked, wanted = calls[number].asked, calls[number].answer
        answer, after = step(names, asked)
        if answer == wanted:
            yield _looked(calls, pending, after, effective | {number}, seen)
        if wanted == DONE and _renames_nothing(state, number, asked):
            yield _looked(calls, pending, names, effective | {number}, seen)


def _completed(calls, possible, pending, ends):
    """Possible states in which a pending call has taken effect, as well as others perhaps."""
    found, reached, todo = set(), set(possible), list(possible)
    while todo:
        names, effective, seen = state = todo.pop()
        if ends in effective:
            found.add((names, effective - {ends}, seen))
            continue
        for one in _after_each(calls, state, pending):
            if one not in reached:
                reached.add(one)
                todo.append(one)
    return found


def first_wrong(calls):
    """The first call that ended with an impossible answer, or None. At first there are no names.

    Linux looks up both names of a rename, and does nothing if they are one file. A client looks
    them up one after the other, and another client may rename the file in between.
    """
    events = sorted([(call.begin, 1, number) for number, call in enumerate(calls)] +
                    [(call.end, 0, number) for number, call in enumerate(calls)])
    possible, pending = {(frozenset(), frozenset(), frozenset())}, frozenset()
    for _, begins, number in events:
        if begins:
            pending |= {number}
            possible = {_looked(calls, pending, *state) for state in possible}
            continue
        possible = _completed(calls, possible, pending, number)
        pending -= {number}
        if not possible:
            return calls[number]
    return None
