"""The hardware catalogue: what it says, how it is looked up, what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headway.errors import ModelError, UsageError
from headway.plan.chip import catalogue, chip, read_chip
from headway.plan.listing import hardware_command, size_text

GOOD = """
name = "X1"
vendor = "Acme"
kind = "gpu"
generation = "x"
[[memory]]
level = "L2"
size = 5e7
on_chip = true
source = "sheet"
[[memory]]
level = "HBM"
size = 8e10
bandwidth = 3e12
source = "sheet"
[peak]
bf16 = 1e15
source = "sheet"
"""


def test_all_chips_that_are_promised_are_there() -> None:
    wanted = (
        "A100 40GB, A100 80GB, H100 SXM, H100 PCIe, H100 NVL, H200, B200, B300, GB200, GB300, MI300X, MI325X, MI355X, "
        "L40S, L4, RTX 4090, RTX 5090, RTX PRO 6000, TPU v6e, Cerebras WSE-3, Groq LPU, "
        "b200_sxm, b300_sxm, h100_sxm, h200_sxm, gb200"
    )
    assert all(chip(name).name in catalogue() for name in wanted.split(", "))


def test_peaks_double_when_bits_halve_and_never_count_sparsity() -> None:
    """Sparse figures are twice the dense ones: a sparse 8-bit peak beside a dense 16-bit one would be four times it."""
    for one in catalogue().values():
        if one.peak is not None and one.peak.fp8 is not None:
            assert one.peak.fp8 / one.peak.bf16 == pytest.approx(2, rel=0.05), one.name
            assert one.peak.fp4 is None or 1.99 <= one.peak.fp4 / one.peak.fp8 <= 4.01, one.name


def test_links_count_one_way() -> None:
    rates = {one.name: one.link.bandwidth / 1e9 for one in catalogue().values() if one.link is not None}
    assert (rates["A100 80GB"], rates["H100 SXM"], rates["B200 SXM"], rates["TPU v6e"]) == (300, 450, 900, 400)


@pytest.mark.parametrize("name", ["H100", "nvidia h100 sxm", "h100_sxm", "H100-SXM5"])
def test_a_chip_is_found_however_it_is_written(name: str) -> None:
    assert chip(name).name == "H100 SXM"


def test_an_unknown_chip_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="hardware H1000 isn't known; did you mean H100 SXM"):
        chip("H1000")
    with pytest.raises(UsageError, match="--hardware"):
        chip("?")


def test_a_chip_without_other_memory_is_not_for_the_step_model() -> None:
    with pytest.raises(UsageError, match="WSE-3 keeps models on the chip"):
        chip("WSE-3").machine()
    with pytest.raises(UsageError, match="no peak for Apple M3 Ultra"):
        chip("M3 Ultra").machine()
    assert read_chip(GOOD, "x.toml").machine().bandwidth == 3e12


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('vendor = "Acme"', "", "x.toml: vendor: field required"),
        ('source = "sheet"\n[[memory]]', "[[memory]]", "x.toml: memory.0.source: field required"),
        ("size = 5e7", "size = -1", "x.toml: memory.0.size: input should be greater than 0"),
        ("size = 8e10", "size = 8e1", "x.toml: memory levels should come from the smallest to the largest"),
        ("bandwidth = 3e12", "bandwidth = 3e24", "are the units right"),
        ('kind = "gpu"', 'kind = "toaster"', "x.toml: kind: input should be 'gpu'"),
        ("bf16 = 1e15", "bf16 = 1e15\nfp7 = 1", "x.toml: peak.fp7: extra inputs are not permitted"),
        ("[peak]", "[peak", "x.toml is not TOML"),
    ],
)
def test_a_faulty_file_is_refused_with_its_key(old: str, new: str, says: str) -> None:
    assert old in GOOD
    with pytest.raises(ModelError) as error:
        read_chip(GOOD.replace(old, new, 1), "x.toml")
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_the_catalogue_is_listed_with_every_source(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hardware_command(tmp_path / "chips.json")
    assert "Hardware" in capsys.readouterr().out
    chips = json.loads((tmp_path / "chips.json").read_text())["chips"]
    assert len(chips) == len(catalogue())
    parts = [part for one in chips for part in (*one["memory"], one["peak"], one["link"], one["power"], one["price"]) if part]
    assert all(part["source"] for part in parts)


def test_sizes_are_written_with_their_unit() -> None:
    assert [size_text(size) for size in (44e9, 50e6, 1.5e12, 2e3)] == ["44 GB", "50 MB", "1.5 TB", "2 kB"]
