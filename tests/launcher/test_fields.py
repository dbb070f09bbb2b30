"""The table of request fields: what is declared once reaches every place."""

from __future__ import annotations

from pathlib import Path

import pytest

from launcher import fields, request
from launcher.clusters.local import LocalCluster
from launcher.clusters.slurm import render as submission
from launcher.fields import FIELDS, Field
from launcher.request import JobOptions, SubmitRequest
from launcher.runs import SlurmRequest
from launcher.transports.local import LocalTransport
from tui import cli
from tui.cli import submit_arguments


def test_a_new_slurm_option_is_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    row = Field(
        "constraint", "Constraint", "Features that the nodes must have.", "text",
        flag="--constraint", metavar="LIST", sbatch="constraint", scheduler=True, optional=True,
    )  # fmt: skip
    for module in (fields, request, submission, submit_arguments):
        monkeypatch.setattr(module, "FIELDS", (*FIELDS, row))
    values = vars(cli.parse("0", ["submit", "r.yaml", "--time", "30", "--constraint", "a100&nvme"]))
    asked = SubmitRequest.of({**values, "recipe": Path("r.yaml")})
    assert asked.options == {"constraint": "a100&nvme"}
    slurm = SlurmRequest(partition="p", time_s=60, options=asked.options)
    stored = SlurmRequest.model_validate_json(slurm.model_dump_json())
    options = JobOptions(asked, nodes=1, gpus_per_node=4, user="u", slurm=stored)
    assert "--constraint=a100&nvme" in submission.sbatch_options(options, "name", "token")


def test_every_flag_of_submit_reaches_the_request() -> None:
    options = {argument.name: argument for argument in submit_arguments.arguments()}
    for row in FIELDS:
        if row.flag.startswith("--") and row.name != "kind":
            assert row.name in SubmitRequest.__dataclass_fields__ or row.sbatch, row.name
            assert options[row.flag].dest == row.name


def test_without_a_scheduler_there_are_no_fields_of_one() -> None:
    names = {row.name for row in LocalCluster(LocalTransport(), {}).fields}
    assert {"recipe", "nodes", "env_file"} <= names
    assert not names & {"partition", "account", "qos", "reservation", "time", "chain", "sbatch_args"}
