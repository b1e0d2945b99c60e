"""What `make lint` says of size, counted by hand."""

import runpy
from pathlib import Path

size = runpy.run_path(str(Path(__file__).with_name("thinness.py")))["size"]


def test_nodes_and_lines_are_those_of_code():
    """Of the module, an assignment, its name and its number; comments and blank lines are none."""
    assert size("# why\n\nx = 1  # because\n") == (4, 1)


def test_docstrings_do_not_count_and_other_texts_do():
    """Module, class, function, its arguments, return, name; of the lines those of class, def and
    return."""
    code = '"""Of it.\n\nMore."""\nclass A:\n    """An A."""\n    def f():\n        """F."""\n        return x\n'
    assert size(code) == (6, 3)
    assert size('x = """a\nb"""\n') == (4, 2)


def test_density_is_told_by_its_words():
    assert str(size("x = 1\ny = 2\n")) == "7 nodes on 2 lines of code (3.50 a line)"
