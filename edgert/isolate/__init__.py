"""Run a function in a fresh child process, so that hostile files and crashing drivers stay there.

    caller  -- request: JSON in a memfd, fd 0 -->  python -m edgert.isolate.child
            <-------- answer: JSON on fd 1 ------

The answer travels on the child's first fd 1; before any of our functions runs, fd 1 becomes what
the child says on stderr, so that a library that prints cannot garble it. Of stderr only the tail
is kept, for the message about a crash.
"""

from edgert.isolate.caller import Call, call, call_all

__all__ = ["Call", "call", "call_all"]
