"""The start-up hook of gtrace: Python imports this module by itself, because 'gtrace run' puts its
directory on PYTHONPATH. It sets our hooks, then loads the sitecustomize it hides, if there is one,
so that the program finds everything as without us. It parses in every version of Python.
"""

import sys


def _set_hooks():
    if sys.version_info < (3, 6):
        return
    try:
        import gtrace_hook

        gtrace_hook.install()
    except (Exception, SystemExit):
        pass


def _load_hidden():
    """Import the next sitecustomize on the path. Its errors, and its absence, are the caller's."""
    own = __file__.rpartition("/")[0]
    path = list(sys.path)
    sys.path[:] = [entry for entry in path if entry != own]
    this = sys.modules.pop(__name__)  # Python 2 clears a module that nobody refers to
    try:
        __import__(this.__name__)
    finally:
        # Programs pass sys.path on to their workers as PYTHONPATH, so we stay in it.
        if own in path:
            sys.path.insert(path.index(own), own)


_set_hooks()
_load_hidden()
