"""What every notebook's start shares: parameters, models, input files, saving, means with
intervals.

A notebook's second cell hands its parameters over by name. The rooms have studies of their own
(`decoding.Study`, ...), which load data, ask questions and mark answers.
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import metadata
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from pandas.api.types import is_integer_dtype

from factrobust import intervals, load_model, paths
from factrobust.models.interface import Model
from factrobust.models.records import Records, open_records
from factrobust.plots import style
from factrobust.provenance import PACKAGES, Provenance, save_figure, save_table

Table = pd.DataFrame
Columns = Sequence[Any]  # names of columns
ModelName = str | Mapping[str, Any]  # a mapping for an endpoint
Statistic = Callable[..., intervals.Array]


def prepare_kernel() -> None:
    """Set what all notebooks need of pandas, matplotlib and Jupyter; run once more, it changes
    nothing."""
    style.setup()
    pd.set_option("display.max_colwidth", 90)
    if "IPython" not in sys.modules:  # a script, maybe where it is not installed
        return
    from IPython import get_ipython

    if shell := get_ipython():
        shell.display_formatter.formatters["text/html"].for_type(pd.DataFrame, _as_html)


def _as_html(table: pd.DataFrame) -> str:
    """As pandas shows a table, but without row numbers: only an index with a name says anything."""
    numbers = table.index.names == [None] and is_integer_dtype(table.index)
    return table.to_html(
        index=not numbers,
        notebook=True,
        max_rows=10 if len(table) > 60 else None,
    )


class Study:
    """Parameters, models and input files of a notebook: the provenance of what it saves.

    `models` are names, folders, files, hub ids or endpoints, as `load_model` takes them.
    `parameters` are the notebook's, by name; one that is None was not given. A room's study has an
    argument for each that it uses, and takes those of later cells as `other_parameters`. Answers
    are kept in `records`, by default where `open_records` says. The input files are those that are
    read from now on.

    Its estimates draw whole clusters of facts, `n_boot` times, a parameter; facts, where a table is
    split by these clusters, or a study has none. Tables need a column `unit`; the clusters come
    from the study's facts."""

    facts: pd.DataFrame
    unit, cluster = "fact_id", ""  # columns of the facts; those of a cluster resemble each other
    others: Sequence[Any] = ()  # further models behind what is saved

    def __init__(
        self,
        *,
        models: Sequence[ModelName] = (),
        parameters: Mapping[str, Any] | None = None,
        records: Records | None = None,
    ) -> None:
        prepare_kernel()
        print(", ".join(f"{package} {metadata.version(package)}" for package in PACKAGES[:4]))
        if "FACTROBUST_OUT" not in os.environ:
            print(f"figures and tables go to {paths.output_root() / 'figures'}")
        given = parameters or {}
        self.parameters = {name: value for name, value in given.items() if value is not None}
        self.records = records or open_records()
        self.models = [load_model(name, records=self.records) for name in models]
        self._since = len(paths.files_read)

    def parameter(self, name: str) -> Any:
        """A parameter. ValueError if the study was made without it."""
        if name not in self.parameters:
            room = type(self).__module__.split(".")[1]
            kind = f"{room}.{type(self).__name__}"
            raise ValueError(
                f"{kind} was made without {name}, which this needs: give it {name}=..."
            )
        return self.parameters[name]

    def means(
        self,
        table: Table,
        by: Columns,
        value: str | list[str],
    ) -> Table:
        """`intervals.interval_table`: means of `value` in each combination of the columns `by`,
        with intervals. n counts facts."""
        return self._estimated(intervals.interval_table, table, by, value, self.unit)

    def statistic(
        self,
        table: Table,
        by: Columns,
        statistic: Statistic,
        columns: Columns,
        sort: bool = True,
    ) -> Table:
        """`intervals.statistic_table`: a weighted statistic of columns, with its interval."""
        estimate = intervals.statistic_table
        return self._estimated(estimate, table, by, statistic, columns, sort=sort)

    def correlations(
        self,
        table: Table,
        by: Columns,
        x: str,
        y: str,
        *,
        ranks: bool = False,
    ) -> Table:
        """`intervals.correlations` of two columns, with intervals; with `ranks` Spearman's."""
        return self._estimated(intervals.correlations, table, by, x, y, ranks=ranks)

    def paired(
        self,
        table: Table,
        by: Columns,
        value: str,
        column: str,
        between: tuple[str, str],
    ) -> Table:
        """`intervals.paired_table`: `value` under two values of `column`, and their difference."""
        how = {"column": column, "between": between, "group": self.unit}
        return self._estimated(intervals.paired_table, table, by, value, **how)

    def pairwise(self, table: Table, value: str, column: str = "model") -> Table:
        """`intervals.pairwise`: the differences of `value` between any two values of `column`."""
        return intervals.pairwise(
            self._complete(table),
            value,
            column,
            group=self.unit,
            cluster=self.cluster,
            n_boot=self.parameter("n_boot"),
        )

    def _estimated(
        self,
        estimate: Callable[..., Table],
        table: Table,
        by: Columns,
        *what: Any,
        **options: Any,
    ) -> Table:
        """A table of `intervals`, in which whole clusters are drawn unless it is split by them."""
        return estimate(
            self._complete(table),
            by,
            *what,
            cluster="" if self.cluster in by else self.cluster,
            n_boot=self.parameter("n_boot"),
            **options,
        )

    def _complete(self, table: pd.DataFrame) -> pd.DataFrame:
        """The table with the clusters of its facts. ValueError unless each fact has one."""
        if not self.cluster or self.cluster in table:
            return table
        pairs = self.facts[[self.unit, self.cluster]].drop_duplicates()
        clusters = pairs.set_index(self.unit)
        twice = clusters.index[clusters.index.duplicated()]
        if len(twice):
            raise ValueError(f"{self.unit} {twice[0]!r} has more than one {self.cluster}.")
        unknown = table.loc[~table[self.unit].isin(clusters.index), self.unit]
        if len(unknown):
            raise ValueError(f"{self.unit} {unknown.iloc[0]!r} is none of the study's facts.")
        return table.merge(clusters, left_on=self.unit, right_index=True)

    def save_figure(self, fig: Figure, name: str, data: pd.DataFrame, **other: Any) -> Figure:
        """`provenance.save_figure` with this study's provenance, of which `other` fields replace
        its own; returns the figure, to be shown."""
        save_figure(fig, name, data, provenance=replace(self.about, **other))
        return fig

    def save_table(
        self,
        table: pd.DataFrame,
        name: str,
        *,
        decimals: int = 3,
        **other: Any,
    ) -> pd.DataFrame:
        """`provenance.save_table`, as `save_figure`; returns the table, to be shown."""
        about = replace(self.about, **other)
        return save_table(table, name, decimals=decimals, provenance=about)

    def published(self, name: str, whose: str = "") -> pd.DataFrame:
        """Numbers of the papers themselves: a table (`datasets.published.load_published`)."""
        from factrobust.datasets.published import load_published  # few notebooks need it

        return load_published(name, whose)

    @property
    def about(self) -> Provenance:
        """Where what it saves comes from."""
        return Provenance(self.parameters, [*self.models, *self.others], self._since)

    def concat_over_models(self, ask: Callable[[Model], pd.DataFrame]) -> pd.DataFrame:
        """What the models answer, one table below the other; an empty one without models."""
        answers = [ask(model) for model in self.models]
        return pd.concat(answers, ignore_index=True) if answers else pd.DataFrame()

    def print_counts(self, counts: str) -> None:
        names = ", ".join(model.name for model in self.models)
        print(f"{counts}, asked of {names or 'no model'}")
