"""Messages of Slurm at many sites: refusals, verdicts, no answer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from launcher.clusters.slurm.messages import (
    failure,
    fix_for,
    is_accounting_off,
    message_of,
    read_job_id,
    read_test_only,
)
from launcher.clusters.slurm.parse import ParseError
from launcher.errors import RefusedError, UnreachableError
from tests.slurm.samples import output

VERDICTS = {
    "sbatch-test-only-andes": ("2019-08-06T10:54:01", 64, "andes[499-500]", "batch"),
    "sbatch-test-only-archer2": ("2022-02-01T23:20:51", 256, "nid002836", "standard"),
    "sbatch-test-only-snellius": ("2026-08-04T13:55:08", 16, "gcn82", "gpu_h100"),
    "sbatch-test-only-new-wording": ("2026-09-30T03:15:46", 8, "spcc-a100g03", "GPU-1A"),
}


@pytest.mark.parametrize("name", VERDICTS)
def test_verdicts(samples: Path, name: str) -> None:
    verdict = read_test_only(output(samples, name))
    assert (verdict.start, verdict.cpus, verdict.nodes, verdict.partition) == VERDICTS[name]


def test_a_verdict_that_names_the_cluster() -> None:
    verdict = read_test_only(
        "sbatch: Job 5 to start at 2026-01-01T00:00:00 on cluster c1 a using 8 processors"
        " on nodes n1 in partition p"
    )
    assert (verdict.cluster, verdict.cpus, verdict.nodes) == ("c1", 8, "n1")


REFUSALS = {
    "sbatch-err-alliance-accounts": ("Please specify one of the following accounts", "--account"),
    "sbatch-err-alliance-wrong-account": ("You cannot use this account", "--account"),
    "sbatch-err-assoc-max-submit": ("AssocMaxSubmitJobLimit", "account"),
    "sbatch-err-dos-linebreaks": ("DOS line breaks", "script"),
    "sbatch-err-gres": ("Invalid generic resource", "GPUs"),
    "sbatch-err-invalid-account": ("Invalid account or account/partition", "account"),
    "sbatch-err-invalid-partition": ("invalid partition specified: abcd", "partitions"),
    "sbatch-err-invalid-qos": ("Invalid qos specification", "QoS"),
    "sbatch-err-no-partition": ("No partition specified", "partition"),
    "sbatch-err-no-time-plugin": ("no time specification", "--time"),
    "sbatch-err-node-config-cpu": ("CPU count per node", "node"),
    "sbatch-err-node-config-mem": ("Memory specification", "node"),
    "sbatch-err-qos-max-submit-clariden": ("QOSMaxSubmitJobPerUserLimit", "QoS"),
    "sbatch-err-qos-max-submit": ("QOSMaxSubmitJobPerUserLimit", "QoS"),
    "sbatch-uppmax-plugin-error": ("Invalid project.", "--account"),
    "salloc-aau-invalid-account": ("Invalid account or account/partition", "account"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals_are_told_in_the_sites_words_with_what_to_do(samples: Path, name: str) -> None:
    text = output(samples, name)
    error = failure("sbatch", 1, text)
    says, fix = REFUSALS[name]
    assert isinstance(error, RefusedError)
    assert says in error.what
    assert fix in error.fix
    assert "Unspecified error" not in error.what
    assert "sbatch: error" not in error.what


UNREACHABLE = [
    "sbatch-err-controller-down",
    "sbatch-err-temporarily-unable",
    "sinfo-err-controller-down",
    "squeue-err-socket-timeout",
    "slurm-err-rate-limit",
    "sacctmgr-dbd-down",
]


@pytest.mark.parametrize("name", UNREACHABLE)
def test_no_answer_is_not_a_refusal(samples: Path, name: str) -> None:
    for line in output(samples, name).splitlines():
        if "sleeping and retrying" not in line and "PersistInit" not in line:
            assert isinstance(failure("squeue", 1, output(samples, name)), UnreachableError)


def test_accounting_that_is_off_and_ids_that_are_gone(samples: Path) -> None:
    assert message_of(output(samples, "sacct-accounting-off")) == "Slurm accounting storage is disabled"
    gone = failure("squeue", 1, output(samples, "squeue-err-invalid-id"))
    assert isinstance(gone, RefusedError)
    assert "Invalid job id specified" in gone.what
    assert "job queue full" in message_of(output(samples, "sbatch-err-job-queue-full"))
    assert fix_for("something new") == ""


def test_answers_of_sbatch(samples: Path) -> None:
    text = output(samples, "sbatch-submit-variants-qtoolkit")
    found = re.findall(r'"stdout": "((?:[Ss]ubmitted|Granted)[^"]*?)\\n"', text)
    assert {read_job_id(line) for line in found if "batch" in line} == {"24", "15"}
    assert (read_job_id("77\n"), read_job_id("77;juwels\n")) == ("77", "77")
    with pytest.raises(ParseError, match="Granted job allocation"):
        read_job_id(next(line for line in found if line.startswith("Granted")))


def failed(*lines: str) -> str:
    return "\n".join(f"sbatch: error: {line}" for line in lines)


RETRY = "Slurm temporarily unable to accept job, sleeping and retrying."
FULL = "Slurm job queue full, sleeping and retrying"
POLICY = "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"


@pytest.mark.parametrize(
    "text",
    [
        failed(FULL, "Batch job submission failed: MaxJobCount limit reached"),
        failed("Batch job submission failed: MaxJobCount limit reached"),
        "sbatch: Job creation temporarily disabled, retrying\n"
        + failed("Batch job submission failed: Requested nodes are busy"),
    ],
)
def test_a_full_queue_passes_by_itself(text: str) -> None:
    error = failure("sbatch", 1, text)
    assert isinstance(error, RefusedError)
    assert "takes no jobs at the moment" in error.what
    assert "retrying" not in error.what
    assert "submit again in some minutes" in error.fix


@pytest.mark.parametrize("text", [failed(RETRY), failed(FULL), ""])
def test_sbatch_that_ended_while_it_tried_has_no_answer(text: str) -> None:
    assert isinstance(failure("sbatch", 1, text), UnreachableError)


@pytest.mark.parametrize(
    ("lines", "says", "fix"),
    [
        ((RETRY, "Batch job submission failed: Invalid account or account/partition combination specified"),
         "Invalid account", "detect"),
        ((f"Batch job submission failed: {POLICY}",), "policy", "Either too many of your jobs are queued"),
        (("QOSMaxWallDurationPerJobLimit", f"Batch job submission failed: {POLICY}"), "QOSMaxWall", "--time"),
        (("AssocMaxWallDurationPerJobLimit", f"Batch job submission failed: {POLICY}"), "AssocMax", "--time"),
        (("AssocMaxNodePerJobLimit", f"Batch job submission failed: {POLICY}"), "AssocMax", "--nodes"),
        (("QOSMaxSubmitJobPerUserLimit", f"Batch job submission failed: {POLICY}"), "Submit", "wait"),
        (("AssocGrpCPUMinutesLimit", f"Batch job submission failed: {POLICY}"), "AssocGrp", "budget"),
        (("Batch job submission failed: Requested node configuration is not available",),
         "Requested node configuration", "No node of the partition"),
        (("Batch job submission failed: Partition in DOWN state",), "DOWN", "use another one"),
    ],
)  # fmt: skip
def test_a_refusal_stays_one(lines: tuple[str, ...], says: str, fix: str) -> None:
    error = failure("sbatch", 1, failed(*lines))
    assert isinstance(error, RefusedError)
    assert says in error.what
    assert "at the moment" not in error.what
    assert fix in error.fix


@pytest.mark.parametrize(
    "text",
    [
        failed("No GPU jobs on Mondays.", "Batch job submission failed: Unspecified error"),
        failed("No GPU jobs on Mondays.", "Batch job submission failed: Unspecified error."),
        failed("No GPU jobs on Mondays.", "Unspecified error."),
        failed("No GPU jobs on Mondays. Batch job submission failed: Unspecified error"),
        failed("No GPU jobs on Mondays. Unspecified error."),
        failed("No GPU jobs on Mondays.: Unspecified error"),
        failed("Batch job submission failed: No GPU jobs on Mondays. Unspecified error"),
        failed("No GPU jobs on Mondays.") + "\nsalloc: error: Job submit/allocate failed: Unspecified error",
        failed("No GPU jobs on Mondays.", "cli_filter plugin terminated with error"),
        "sbatch: lua: No GPU jobs on Mondays.\nallocation failure: Unspecified error",
        "No GPU jobs on Mondays.\n" + failed("Batch job submission failed: Unspecified error"),
    ],
)
def test_a_sites_own_words_are_kept_clean(text: str) -> None:
    assert message_of(text) == "No GPU jobs on Mondays."


def test_an_error_without_words() -> None:
    assert message_of(failed("Batch job submission failed: Unspecified error")) == "Unspecified error"


def test_accounting_is_no_account() -> None:
    assert fix_for("the accounting plugin said something") == ""
    assert fix_for("accounting_storage is not there") == ""
    assert fix_for("your project has expired") == "Give another --account."
    assert is_accounting_off("sreport: error: You are not running a supported accounting_storage plugin")
    assert not is_accounting_off("Problem talking to the database: Connection refused")


FAILED = "sbatch: error: Batch job submission failed: "


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        (
            "sbatch: error: lua: you must specify a gpu type\n" + FAILED + "Unspecified error",
            "gres=gpu:TYPE:N",
        ),
        ("sbatch: error: Request the type of GPU, as in --gres=gpu:a100:1", "gres=gpu:TYPE:N"),
        ("sbatch: error: GPU type missing\n" + FAILED + "Unspecified error", "gres=gpu:TYPE:N"),
        ("sbatch: error: --exclusive is not allowed here\n" + FAILED + "Unspecified error", "sbatch_without"),
        (
            "sbatch: error: The --mem option is not supported\n" + FAILED + "Unspecified error",
            "sbatch_without",
        ),
        (FAILED + "Invalid generic resource (gres) specification", "no such GPUs"),
        (
            "sbatch: error: AssocGrpSubmitJobsLimit\n" + FAILED + "Job violates accounting/QOS policy",
            "account has",
        ),
        (
            "sbatch: error: QOSGrpSubmitJobsLimit\n" + FAILED + "Job violates accounting/QOS policy",
            "The QoS allows",
        ),
        (FAILED + "Invalid feature specification", "--constraint"),
        (FAILED + "Memory required by task is not available", "--sbatch-arg=--mem="),
        (FAILED + "Requested partition configuration not available now", "limit of the partition"),
        (FAILED + "Invalid node name specified", "--nodelist"),
        (
            "sbatch: error: 'x' can't be reached now, or it is an invalid entry for --cluster.",
            "SLURM_CLUSTERS",
        ),
    ],
)
def test_what_to_do_about_refusals_of_sites_and_of_slurm(text: str, fix: str) -> None:
    error = failure("sbatch", 1, text)
    assert isinstance(error, RefusedError)
    assert fix in error.fix
