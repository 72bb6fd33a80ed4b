"""The claims. Each takes an agent, and returns what was seen, in words with figures."""

import random
import shutil
import time

from ending import LOOK_S
from oracle import check, finished
from promises import Violation, demand
from store import Store, Watch

# So many kills have to fall inside runs of an agent, and so many runs are made for that at least and at most.
KILLS_MIN = 10
RUNS_MIN = 2
RUNS_MAX = 5
# How long a `watch` lives at most after its agent's files have grown, until it is killed.
LIFE_S_MAX = 0.2
# After how long `watch` has surely seen that files are gone. If it has not, less is shown, and nothing fails.
NOTICED_S = 0.5
# How many events a session has in the middle of the long scenario, or so.
MIDDLE = 40


def followed(agent):
    """`watch` is there before the agent's home is, and stays when the home is deleted and made anew."""
    return follow(agent, "followed")


def followed_by_polling(agent):
    return follow(agent, "polled", "--poll")


def follow(agent, name, *options):
    agent.home.rmdir()
    store = Store(agent, name)
    watch = Watch(store, *options)
    sessions, waits = [], []
    for begin in (agent.main, agent.long):
        job = begin()
        job.end()
        sessions.append(finished([job], Store(agent, f"{name}-import-{len(sessions)}")))
        waits.append(store.wait_for(sessions[-1].transcripts))
    watch.end()
    check(store, sessions)
    late, later = waits
    return f"{told(sessions)}; whole {late:.1f} s after the end in a new home, {later:.1f} s in one made anew"


def killed(agent):
    """SIGKILL comes again and again while the agent works, and the next `watch` at once."""
    store = Store(agent, "killed")
    dice = random.Random(agent.name)
    watch, sessions = Watch(store), []
    kills = inside = useful = 0
    while len(sessions) < RUNS_MIN or inside < KILLS_MIN and len(sessions) < RUNS_MAX:
        agent.clear()
        job = agent.main() if not sessions else agent.long()
        sizes = []
        while grows(agent, job):
            began_with = store.size()
            time.sleep(dice.uniform(0, LIFE_S_MAX))
            if not job.is_alive():
                break
            sizes.append(agent.size())
            useful += store.size() > began_with
            watch.kill()
            watch = Watch(store)
        job.end()
        kills += len(sizes)
        # Something had been written before the kill, and something was written after it.
        inside += sum(0 < size < agent.size() for size in sizes)
        sessions.append(finished([job], Store(agent, f"killed-import-{len(sessions)}")))
        store.wait_for(sessions[-1].transcripts)
    watch.end()
    check(store, sessions)
    demand(inside >= KILLS_MIN, f"only {inside} of {kills} kills fell inside a run, in {len(sessions)} runs")
    demand(useful > 0, "no `watch` that was killed had recorded anything")
    return f"{told(sessions)}; {kills} kills, {inside} inside, {useful} of a `watch` that had recorded something"


def grows(agent, job):
    """Waits until the agent's files grow; returns whether it is still at work."""
    before = agent.size()
    while job.is_alive():
        if agent.size() > before:
            return True
        time.sleep(LOOK_S / 5)
    return False


def restored(agent):
    """Files that were imported are deleted and given back, and the agent goes on with the session."""
    return restore(agent, "restored", is_watched=False)


def restored_beside_watch(agent):
    """The same, and `watch` sees the files go, come back and grow."""
    return restore(agent, "watched", is_watched=True)


def restore(agent, name, is_watched):
    store = Store(agent, name)
    watch = Watch(store) if is_watched else None
    first = agent.main()
    first.end()
    session = finished([first], Store(agent, f"{name}-import-0"))
    record(store, session, is_watched)
    check(store, [session])
    files = agent.files()
    shutil.rmtree(agent.sessions)
    if watch:
        time.sleep(NOTICED_S)
    store.run("restore", session.root)
    now = agent.files()
    wrong = [path for path in {*files, *now} if files.get(path) != now.get(path)]
    demand(not wrong, f"not as they were: {wrong}")
    again = agent.go_on(session.root)
    again.end()
    check_remembers(again)
    whole = finished([first, again], Store(agent, f"{name}-import-1"))
    demand(whole.root == session.root, f"session {session.root} went on as {whole.root}")
    for run, text in session.transcripts.items():
        is_longer = len(whole.transcripts[run]) > len(text) or run != session.root
        demand(whole.transcripts[run].startswith(text) and is_longer, f"run {run} did not go on as it was")
    record(store, whole, is_watched)
    if watch:
        watch.end()
    check(store, [whole])
    size = sum(map(len, files.values()))
    gone_on = f"{len(whole.calls) - len(session.calls)} calls and {whole.events - session.events} events more"
    return f"{told([session])}; {len(files)} files of {size} bytes given back; {gone_on} when the session went on"


def record(store, session, is_watched):
    """Has a session recorded: by the `watch` that is there, or else by an import."""
    if not is_watched:
        store.run("import")
    store.wait_for(session.transcripts)


def check_remembers(job):
    """The model was sent what had been said and what tools had given before the files were deleted."""
    asked = [text for text in job.requests() if "Go on." in text]
    demand(asked, "the model was not asked to go on")
    # The end of a line that a command printed: what it printed to stderr may be before it.
    for words in ("Work through the list.", "I'll start with a shell command.", "beta\n", "3 lines"):
        demand(all(words in text for text in asked), f"the agent forgot {words!r}")


def shared(agent):
    """Two on one store: what one of them records the other leaves alone."""
    store = Store(agent, "shared")
    watches = [Watch(store), Watch(store)]
    job = agent.main()
    job.end()
    session = finished([job], Store(agent, "shared-import"))
    store.wait_for(session.transcripts)
    events = [watch.end() for watch in watches]
    check(store, [session])
    demand(sum(events) == session.events, f"{events} events were written, and there are {session.events}")
    return f"{told([session])}; {events[0]} and {events[1]} written by each"


def taken_over(agent):
    """Of two, the one that records is killed in the middle, and the other goes on."""
    store = Store(agent, "taken")
    watches = [Watch(store), Watch(store)]
    job = agent.long()
    await_events(store, job, 1)
    root, *_ = store.transcripts()
    await_events(store, job, MIDDLE, root)
    holder = store.holder(root)
    owners = [watch for watch in watches if watch.process.pid == holder]
    demand(len(owners) == 1, f"run {root} is held by process {holder}, which is none of ours")
    owners[0].kill()
    killed_at, size = time.monotonic(), agent.size()
    known = store.transcripts()[root].count(b"\n")
    await_events(store, job, known + 1, root)
    took = time.monotonic() - killed_at
    job.end()
    demand(0 < size < agent.size(), "the kill did not fall inside the run")
    session = finished([job], Store(agent, "taken-import"))
    store.wait_for(session.transcripts)
    for watch in watches:
        if watch not in owners:
            watch.end()
    check(store, [session])
    return f"{told([session])}; the other had taken over {took:.1f} s after the kill"


def await_events(store, job, count, run=None):
    """Waits until a run, or the first that there is, has so many events."""
    while job.is_alive():
        transcripts = store.transcripts()
        text = transcripts.get(run) if run else next(iter(transcripts.values()), None)
        if text and text.count(b"\n") >= count:
            return
        time.sleep(LOOK_S)
    raise Violation(f"there were no {count} events of run {run or 'any'} while the agent was at work")


def told(sessions):
    """What was checked, in figures."""
    calls, events = sum(len(session.calls) for session in sessions), sum(session.events for session in sessions)
    subagents = sum(len(session.transcripts) - 1 for session in sessions)
    return f"sessions {len(sessions)}, subagents {subagents}, calls {calls}, events {events}"
