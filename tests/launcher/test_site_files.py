"""Site files of users: every table is checked, and a profile's answers go into a request."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from launcher.errors import InputError
from launcher.request import SubmitRequest, with_profile
from launcher.sites import Profile, site_with, sites
from recipes.errors import FilePosition
from tests.launcher.ordering import DETECTION, SITE, Desk

GENERIC = next(site for site in sites() if site.id == "generic")


@pytest.mark.parametrize(
    ("text", "says", "line"),
    [
        (
            "[profiles.debug]\n\npartiton = 'x'",
            "'partiton'; did you mean partition? (in [profiles.debug])",
            3,
        ),
        ("account = 'a'", "unknown key 'account'; it belongs to [profiles.NAME]", 1),
        ("[profiles.debug]\nnodess = 2", "did you mean nodes?", 2),
        ("[profile.debug]\nnodes = 2", "unknown key 'profile'; did you mean profiles?", 1),
        ("[job]\noffine = true", "'offine'; did you mean offline? (in [job])", 2),
        ("[jobs]\noffline = true", "'jobs'; did you mean job?", 1),
        ("[poling]\nfront_s = 60", "did you mean polling?", 1),
        ("[polling]\nfronts = 60", "did you mean front_s? (in [polling])", 2),
        ("[smoke]\nmax_time = 60", "did you mean max_time_s? (in [smoke])", 2),
        ("[recognise]\nhost = ['a']", "did you mean hosts? (in [recognise])", 2),
        ("[login]\nhostss = ['a']", "did you mean hosts? (in [login])", 2),
        ("gpu_memory = {a100 = 40}", "did you mean gpu_memory_gib?", 1),
        ("[job.enviroment]\nA = 'b'", "'enviroment'; did you mean environment? (in [job])", 1),
        ("[profiles.a.environment]\n'A-B' = 1", "'A-B' is no name of a variable", 1),
        ("[profiles.a]\ntime = true", "invalid time: expected minutes, or a text", 2),
        ("[profiles.a]\ntime = 2.5", "invalid time: expected minutes, or a text", 2),
        ("[profiles.a]\ntime = 0", "invalid time: invalid time limit '0'", 2),
        ("[profiles.a]\nnodes = true", "invalid nodes: input should be a valid integer", 2),
        ("[smoke]\nmax_nodes = true", "invalid max_nodes: input should be a valid integer", 2),
        ("[profiles.a]\ntime = 'soon'", "invalid time: invalid time limit 'soon'", 2),
        ("[profiles.a]\nnodes = 0", "invalid nodes", 2),
        ("[profiles.a]\nnodes = 'two'", "invalid nodes", 2),
        ("[profiles.a]\npartition = ''", "must be one word", 2),
        ("[profiles.a]\naccount = '--x'", "must be one word", 2),
        ("[profiles.a]\nmounts = ['data']", "invalid mount 'data'", 2),
        ("[profiles.a]\nsbatch_args = '--hold'", "invalid sbatch_args", 2),
        ("[gpu_memory_gib]\na100 = 'much'", "invalid a100", 2),
        ("[gpu_memory_gib]\na100 = 0", "invalid a100", 2),
        ("profiles = 3", "invalid profiles", 1),
        ("[job]\nmodules = = 1", "invalid site file", 2),
        ('[profiles."\\u001b]0;x\\u0007a"]\nnode = 1', "did you mean nodes?", 0),
    ],
)
def test_what_is_no_site_file_is_told_with_file_line_and_key(text: str, says: str, line: int) -> None:
    with pytest.raises(InputError) as refused:
        site_with(GENERIC, text.encode(), "/c/site.toml")
    assert says in refused.value.what
    assert "\x1b" not in refused.value.what
    assert isinstance(refused.value.where, FilePosition)
    assert refused.value.where.file == "/c/site.toml"
    assert not line or refused.value.where.line == line


def test_a_profile_as_people_write_it() -> None:
    text = """
    [profiles.debug]
    partition = "devel"
    account = "p"
    time = 02:00:00
    nodes = 2
    gpus_per_node = 4
    environment = { A = 1, B = "b" }
    [profiles."long run"]
    time = 30
    """
    site = site_with(GENERIC, text.encode(), "site.toml")
    debug = site.profile("debug")
    assert (debug.partition, debug.account, debug.time, debug.nodes) == ("devel", "p", "02:00:00", 2)
    assert (debug.gpus_per_node, debug.qos, debug.environment) == (4, None, {"A": "1", "B": "b"})
    assert site.profile("long run").time == "30"
    with pytest.raises(InputError, match="unknown profile 'debg'; did you mean debug"):
        site.profile("debg")


def test_every_site_of_the_program_can_be_overridden_by_its_own_data() -> None:
    for site in sites():
        path = Path(__file__).parents[2] / "launcher" / "sites" / f"{site.id}.toml"
        assert site_with(site, path.read_bytes(), path) == site


def test_a_flag_goes_before_the_profile_which_goes_before_the_default(tmp_path: Path) -> None:
    desk = Desk.at(tmp_path)
    profile = Profile(partition="other", account="x", time="1:00:00", nodes=1, gpus_per_node=2)
    desk = replace(desk, detection=replace(DETECTION, site=replace(SITE, profiles={"a": profile})))
    request = SubmitRequest(desk.recipe, None, profile="a")
    options = desk.plan_of(request).options
    slurm = options.slurm_request
    assert (slurm.partition, slurm.account, slurm.time_s) == ("other", "x", 3600)
    assert (options.nodes, options.gpus_per_node) == (1, 2)
    flagged = replace(request, partition="booster", time="2:00:00", gpus_per_node=4)
    slurm = desk.plan_of(flagged).options.slurm_request
    assert (slurm.partition, slurm.account, slurm.time_s) == ("booster", "x", 7200)
    with pytest.raises(InputError, match="no time limit"):
        desk.plan_of(replace(request, profile=None, nodes=1))


def test_a_smoke_run_goes_where_the_profile_says(tmp_path: Path) -> None:
    site = replace(SITE, profiles={"a": Profile(reservation="r", nodes=3)})
    request = with_profile(SubmitRequest(tmp_path, None, kind="smoke", profile="a"), site)
    assert (request.reservation, request.nodes, request.partition) == ("r", 3, None)
