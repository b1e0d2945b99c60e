"""Facts of one's own."""

import pytest
from ruled import CAPITALS


@pytest.fixture
def mine(tmp_path):
    """A CSV of five questions of one relation."""
    lines = ["question,answer,relation"]
    for country, city in CAPITALS.items():
        lines.append(f"What is the capital of {country}?,{city},capital")
    path = tmp_path / "mine.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def numbered(tmp_path):
    """A function for a CSV of questions that `ruled.number` knows, one for each of these
    relations."""

    def write(relations):
        lines = ["question,answer,relation"]
        for i, relation in enumerate(relations):
            lines.append(f"What is number {i}?,n{i},{relation}")
        path = tmp_path / "numbered.csv"
        path.write_text("\n".join(lines))
        return path

    return write
