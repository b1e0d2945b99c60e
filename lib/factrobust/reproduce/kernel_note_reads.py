"""IPython start-up file of the notebooks' kernels: notes which files of the project they read.

`factrobust.reproduce.kernel` copies this file into the kernels' IPython profile; nothing imports
it. It runs in the notebook's own namespace, so it leaves no name behind.
"""


def _note_reads() -> None:
    import json
    import os
    import sys
    from pathlib import Path
    from typing import Any

    from IPython import get_ipython

    target, root = os.environ.get("FACTROBUST_READS"), os.environ.get("FACTROBUST_ROOT")
    if not target or not root:
        return
    top = os.path.realpath(root) + os.sep
    opened: set[str] = set()
    seen: set[str] = set()
    reads: set[str] = set()

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open":
            return
        path, mode, flags = arguments
        # os.open gives no mode but flags; a file descriptor is no path.
        writes = any(c in mode for c in "wax+") if mode else flags & (os.O_WRONLY | os.O_RDWR)
        if not writes and not isinstance(path, int):
            opened.add(os.path.abspath(os.fsdecode(path)))

    def dump(*_: object) -> None:
        modules = [getattr(module, "__dict__", {}) for module in list(sys.modules.values())]
        new = opened | {str(names["__file__"]) for names in modules if names.get("__file__")}
        new -= seen
        seen.update(new)  # thousands of files, and a look at each link of each path
        real = (os.path.realpath(file) for file in new)
        found = {file.removeprefix(top) for file in real if file.startswith(top)}
        if found:
            reads.update(found)
            Path(target).write_text(json.dumps(sorted(reads)), encoding="utf-8")

    sys.addaudithook(hook)
    dump()  # the thousands of files of what is imported already, while the kernel waits
    # After every cell, not at exit: a kernel may be killed before it says goodbye.
    get_ipython().events.register("post_run_cell", dump)


_note_reads()
del _note_reads
