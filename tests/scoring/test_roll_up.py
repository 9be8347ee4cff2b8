"""Rolling suggestions up a hierarchy."""

from labelwood.scoring.roll_up import roll_up

PARENTS = {"cat": ["pet"], "dog": ["pet"], "pet": ["animal"], "cow": ["animal"], "oak": ["tree"], "ring": ["ring"],
           "x": ["y"], "y": ["x"], "both": ["pet", "plant"]}  # fmt: skip


def rolled(row, threshold=0.6):
    return [(label, round(score, 4)) for label, score in roll_up(row, lambda one: PARENTS.get(one, []), threshold)]


def test_certain_labels_stay_and_their_parents_are_implied():
    assert rolled([("cat", 0.9), ("dog", 0.5), ("cow", 0.5)]) == [("cat", 0.9)]


def test_uncertain_children_give_their_parent():
    assert rolled([("cat", 0.4), ("dog", 0.35), ("oak", 0.2)]) == [("pet", 0.61)]


def test_a_grandparent_takes_what_the_parents_lack():
    assert rolled([("cat", 0.3), ("cow", 0.45)]) == [("animal", 0.615)]


def test_the_parents_own_score_counts_once():
    assert rolled([("pet", 0.3), ("cat", 0.45)]) == [("pet", 0.615)]


def test_a_label_below_two_parents_is_not_counted_twice():
    assert rolled([("both", 0.4), ("cat", 0.3)]) == []
    assert rolled([("both", 0.4), ("cat", 0.4)]) == [("pet", 0.64)]


def test_cycles_end():
    assert rolled([("ring", 0.5), ("x", 0.5)]) == []
    assert rolled([("x", 0.4), ("y", 0.4)]) in ([("y", 0.64), ("x", 0.64)], [("x", 0.64), ("y", 0.64)], [("y", 0.64)])
