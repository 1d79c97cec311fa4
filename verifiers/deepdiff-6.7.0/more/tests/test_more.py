import pytest

from deepdiff import DeepDiff, Delta


def test_forced_change_creates_a_dictionary():
    diff = {"values_changed": {"root['a']['b']": {"new_value": 1}}}
    assert Delta(diff, force=True) + {} == {"a": {"b": 1}}


def test_forced_change_creates_what_lies_between():
    diff = {"values_changed": {"root['m'][0]['x']": {"new_value": 1}}}
    result = Delta(diff, force=True) + {}
    assert result["m"][0]["x"] == 1


def test_forced_change_keeps_a_tuple_that_lacks_the_index():
    diff = {"values_changed": {"root['a'][1]['b']['c']": {"new_value": 1}}}
    assert Delta(diff, force=True, log_errors=False) + {"a": (1,)} == {"a": (1,)}


def test_removed_item_is_the_nearest_equal_one():
    diff = {"iterable_item_removed": {"root[3]": "x"}}
    delta = Delta(diff, bidirectional=True, raise_errors=True)
    assert delta + ["x", "a", "x", "b", "c", "x"] == ["x", "a", "b", "c", "x"]
    assert delta + ["x", "a", "b", "c", "x"] == ["x", "a", "b", "c"]
    assert delta + ["x", "a"] == ["a"]


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("raise_errors", [True, False])
def test_removed_item_that_is_nowhere_is_skipped(bidirectional, raise_errors, caplog):
    diff = {"iterable_item_removed": {"root['b'][1]": "x", "root['b'][7]": "y"}}
    delta = Delta(diff, bidirectional=bidirectional, raise_errors=raise_errors)
    assert delta + {"b": [1, 2, 3]} == {"b": [1, 2, 3]}
    assert caplog.records == []


def test_removed_item_with_iterable_compare_func():
    diff = {"iterable_item_removed": {"root[1]": "x"}}
    delta = Delta(diff, iterable_compare_func_was_used=True)
    assert delta + ["x", "a", "b"] == ["x", "b"]
    t1 = [{"id": 1, "v": 1}, {"id": 2, "v": 1}]
    diff = DeepDiff(t1, t1[1:], iterable_compare_func=lambda x, y, level=None: x["id"] == y["id"])
    rows = Delta(diff, bidirectional=True).to_flat_dicts()
    assert all(row["action"].startswith("iterable_item_") for row in rows)


def test_rows_of_ordered_and_unordered_items():
    diff = DeepDiff([1, 2, "B"], [1, 2], ignore_order=True, report_repetition=True)
    rows = Delta(diff, bidirectional=True).to_flat_dicts()
    assert rows == [{"path": [2], "value": "B", "action": "unordered_iterable_item_removed"}]
    assert Delta(flat_dict_list=rows).diff == {"iterable_items_removed_at_indexes": {"root": {2: "B"}}}
    rows = [{"path": ["field2", 0], "value": "James", "action": "iterable_item_added"}]
    assert Delta(flat_dict_list=rows).diff == {"iterable_item_added": {"root['field2'][0]": "James"}}


def test_forced_addition_keeps_the_type_of_what_exists():
    rows = [{"path": ["field2", 1], "value": "James", "action": "iterable_item_added"}]
    assert Delta(flat_dict_list=rows, force=True) + {"field2": ["Jack"]} == {"field2": ["Jack", "James"]}
    assert Delta(flat_dict_list=rows, force=True) + {"field2": ("Jack",)} == {"field2": ("Jack", "James")}


def test_delta_diff_forwards_and_backwards():
    diff = {"iterable_items_removed_at_indexes": {"root['f']": {(0, "GET"): "xxx"}}}
    delta = Delta(delta_diff=diff, bidirectional=True)
    assert {"f": ["yyy"]} - delta == {"f": ["yyy", "xxx"]}
    diff = {"values_changed": {"root['a']": {"old_value": 1, "new_value": 2}}}
    delta = Delta(delta_diff=diff, bidirectional=True)
    assert delta + {"a": 1} == {"a": 2}
    assert {"a": 2} - delta == {"a": 1}
    assert delta.diff == {"values_changed": {"root['a']": {"old_value": 1, "new_value": 2}}}
