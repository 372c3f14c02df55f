"""Every state of a node, as scontrol and as sinfo write it, long and short, and what it means."""

from itertools import product

from rows import rows

from siteproof.slurm.spelling import BASES, node_state, without_resizing

# scontrol | sinfo %T | sinfo %t | what: u usable, i idle, r reserved, o taken out.
# The words are those of node_state_string() and node_state_string_compact() of Slurm.
STATES = """
IDLE | idle | idle | ui
ALLOCATED | allocated | alloc | u
MIXED | mixed | mix | u
DOWN | down | down | o
UNKNOWN | unknown | unk | o
FUTURE | future | futr | o
ERROR | error | error | o
IDLE+DRAIN | drained | drain | o
ALLOCATED+DRAIN | draining | drng | o
MIXED+DRAIN | draining | drng | o
IDLE+COMPLETING+DRAIN | draining | drng | o
DOWN+DRAIN | drained | drain | o
DOWN+DRAIN+NOT_RESPONDING | drained* | drain* | o
IDLE+DRAIN+MAINTENANCE+RESERVED | drained$ | drain$ | ro
ALLOCATED+DRAIN+MAINTENANCE | draining$ | drng$ | ro
IDLE+FAIL | fail | fail | o
IDLE+FAIL+NOT_RESPONDING | fail* | fail* | o
ALLOCATED+FAIL | failing | failg | o
IDLE+NOT_RESPONDING | idle* | idle* |
ALLOCATED+NOT_RESPONDING | allocated* | alloc* |
MIXED+NOT_RESPONDING | mixed* | mix* |
DOWN+NOT_RESPONDING | down* | down* | o
UNKNOWN+NOT_RESPONDING | unknown* | unk* | o
IDLE+COMPLETING | completing | comp | u
IDLE+COMPLETING+NOT_RESPONDING | completing* | comp* |
ALLOCATED+COMPLETING | allocated+ | alloc+ | u
IDLE+RESERVED | reserved | resv | uir
IDLE+MAINTENANCE+RESERVED | maint | maint | uir
IDLE+MAINTENANCE+NOT_RESPONDING | maint* | maint* | r
ALLOCATED+MAINTENANCE+RESERVED | allocated$ | alloc$ | ur
MIXED+MAINTENANCE+RESERVED | mixed$ | mix$ | ur
DOWN+MAINTENANCE+RESERVED | down$ | down$ | ro
IDLE+PLANNED | planned | plnd | u
MIXED+PLANNED | mixed- | mix- | u
IDLE+BLOCKED | blocked | block | u
IDLE+PERFCTRS | perfctrs | npc | u
IDLE+INVALID_REG | inval | inval |
IDLE+REBOOT_REQUESTED | reboot | boot |
IDLE+NOT_RESPONDING+REBOOT_REQUESTED | reboot* | boot* |
IDLE+REBOOT_ISSUED | reboot^ | boot^ |
MIXED+REBOOT_REQUESTED | mixed@ | mix@ | u
ALLOCATED+REBOOT_REQUESTED | allocated@ | alloc@ | u
ALLOCATED+REBOOT_ISSUED | allocated^ | alloc^ |
DOWN+REBOOT_ISSUED | down^ | down^ | o
IDLE+CLOUD+POWERED_DOWN | idle~ | idle~ | ui
IDLE+CLOUD+POWERING_UP | idle# | idle# | ui
IDLE+CLOUD+NOT_RESPONDING+POWERING_UP | idle# | idle# | ui
IDLE+CLOUD+NOT_RESPONDING+POWERED_DOWN | idle~ | idle~ | ui
IDLE+POWER_DOWN | idle! | idle! | ui
IDLE+CLOUD+POWERING_DOWN | idle% | idle% | ui
MIXED+CLOUD+POWERING_UP | mixed# | mix# | u
ALLOCATED+CLOUD+POWERING_UP | allocated# | alloc# | u
DOWN+CLOUD+POWERED_DOWN | down~ | down~ | o
IDLE+DRAIN+POWERED_DOWN | drained~ | drain~ | o
FUTURE+POWERED_DOWN | future~ | futr~ | o
UNKNOWN+POWERED_DOWN | powered_down | powered_dn | o
UNKNOWN+POWERING_DOWN | powering_down | powring_dn | o
UNKNOWN+POWERING_UP | powering_up | powering_up | o
UNKNOWN+POWER_DOWN | power_down | pow_dn | o
UNKNOWN+POWER_UP | power_up | pow_up | o
UNKNOWN+CLOUD | cloud | cloud | o
UNKNOWN+EXTERNAL | external | ext | o
UNKNOWN+REBOOT_CANCEL | cancel_reboot | canc_r | o
UNKNOWN+RESUME | resume | resm | o
IDLE+DYNAMIC_NORM | idle | idle | ui
IDLE+DYNAMIC_FUTURE | idle | idle | ui
IDLE+EXTERNAL | idle | idle | ui
IDLE+CLOUD | idle | idle | ui
"""
ROWS = [[cell.strip() for cell in row.split("|")] for row in STATES.split("\n") if row]


def meaning(state):
    return "".join(
        letter
        for letter, true in [
            ("u", state.usable),
            ("i", state.idle),
            ("r", state.reserved),
            ("o", state.taken_out),
        ]
        if true
    )


@rows("scontrol, long, short, means", ROWS)
def test_all_spellings_of_a_state_mean_the_same(scontrol, long, short, means):
    for said in (scontrol, long, short, long.upper(), scontrol.lower()):
        assert meaning(node_state(said)) == means, said
    assert node_state(long).words == node_state(short).words, long


# sinfo has one word where scontrol has several, and here it hides the one that counts: such a node
# is not used, and scontrol, which the gate asks, knows that it is out.
@rows(
    "scontrol, sinfo",
    [
        ("DOWN+DRAIN+INVALID_REG", "inval"),
        ("DOWN+CLOUD+REBOOT_ISSUED", "reboot^"),
        ("IDLE+DRAIN+REBOOT_REQUESTED", "reboot"),
        ("DOWN+REBOOT_REQUESTED", "reboot"),
    ],
)
def test_a_state_of_which_sinfo_hides_a_part_is_not_used(scontrol, sinfo):
    assert node_state(scontrol).taken_out
    assert not node_state(scontrol).usable
    assert not node_state(sinfo).usable


def test_a_node_that_is_taken_out_is_never_usable_or_idle():
    flags = {word for row in ROWS for word in row[0].split("+")} - {*BASES}
    for base in BASES:
        for words in [(), *((flag,) for flag in flags), *product(flags, flags)]:
            state = node_state("+".join([base, *words]))
            assert not (state.taken_out and state.usable)
            assert state.usable or not state.idle


def test_the_words_are_those_of_scontrol():
    said = "IDLE+CLOUD+NOT_RESPONDING+POWERING_UP"
    assert node_state(said).words == {"IDLE", "CLOUD", "NOT_RESPONDING", "POWERING_UP"}
    assert node_state("drained~").words == {"IDLE", "DRAIN", "POWERED_DOWN"}


@rows("said", ["IDLE*+DRAIN", "DOWN*+DRAIN", "ALLOCATED+DOWN", "IDLE~+DRAIN"])
def test_the_spelling_of_older_releases_is_read(said):
    assert node_state(said).taken_out


@rows(
    "said, means",
    [
        ("IDLE+NEXT_YEARS_FLAG", "ui"),
        ("MIXED+NEXT_YEARS_FLAG", "u"),
        ("IDLE+?", "ui"),
        ("IDLE+DRAIN+NEXT_YEARS_FLAG", "o"),
        ("DOWN+NEXT_YEARS_FLAG", "o"),
    ],
)
def test_a_flag_of_a_later_release_leaves_the_judgement_to_the_others(said, means):
    assert meaning(node_state(said)) == means


@rows("said", ["", "?", "QUARANTINED", "INVALID+DRAIN", "id", "null", "é", "+"])
def test_what_is_no_known_base_state_is_not_used(said):
    state = node_state(said)
    assert "UNKNOWN" in state.words
    assert meaning(state) == "o"


@rows(
    "said, left",
    [
        ("RESIZING,COMPLETED", "COMPLETED"),
        ("RESIZING", "RUNNING"),
        ("COMPLETED", "COMPLETED"),
        (None, None),
        ("", ""),
    ],
)
def test_the_record_from_before_a_job_lost_a_node_does_not_count(said, left):
    assert without_resizing(said) == left
