"""Holds a lock by kazoo's Lock recipe, as its parent tells it to.

Arguments: servers, path, name of the nodes, session timeout in seconds.
Commands on standard input, one a line: "lock", "try SECONDS", "release".
Answers on standard output: "ready" once connected, then "held", "busy",
"released" or "error ..." to each command. The end of the input ends it.
"""

import logging
import sys

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, LockTimeout
from kazoo.recipe.lock import Lock


def lock_of(client, path, node_name):
    if node_name == Lock._NODE_NAME:
        # What kazoo offers: it respects others, by the names of their nodes.
        return Lock(client, path, "kazoo", extra_lock_patterns=["lock-"])

    class NamedLock(Lock):
        # So that those who know no names but theirs respect it as well.
        _NODE_NAME = node_name
        _EXCLUDE_NAMES = [node_name]

    return NamedLock(client, path, "kazoo")


def main():
    servers, path, node_name, timeout = sys.argv[1:5]
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    client = KazooClient(hosts=servers, timeout=float(timeout))
    client.start(timeout=60)
    lock = lock_of(client, path, node_name)
    print("ready", flush=True)
    for line in sys.stdin:
        word, *args = line.split()
        try:
            if word == "lock":
                answer = "held" if lock.acquire() else "busy"
            elif word == "try":
                try:
                    answer = "held" if lock.acquire(timeout=float(args[0])) else "busy"
                except LockTimeout:
                    answer = "busy"
            elif word == "release":
                lock.release()
                answer = "released"
            else:
                answer = "error unknown command " + word
        except KazooException as e:
            answer = "error " + repr(e)
        print(answer, flush=True)
    client.stop()


main()
