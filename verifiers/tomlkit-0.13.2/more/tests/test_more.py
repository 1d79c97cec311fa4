import pytest

from tomlkit import parse
from tomlkit.items import Bool
from tomlkit.items import Integer


def test_removing_the_last_item_of_an_array_without_trailing_comma():
    doc = parse('x = [\n    "foo",\n    "bar"]\n')
    del doc["x"][1]
    assert doc.as_string() == 'x = [\n    "foo"]\n'


def test_removing_the_only_item_of_an_array():
    doc = parse('x = [\n    "foo"]\n')
    doc["x"].remove("foo")
    assert parse(doc.as_string()).unwrap() == {"x": []}


def test_header_behind_an_unterminated_array_of_tables():
    text = '[[fruit]]\nname = "apple"\n\n[[nut]]\nkind = "oak"\n\n[[fruit]]\nname = "pear"'
    expected = '[[fruit]]\nname = "apple"\n\n[[fruit]]\nname = "pear"\n[[nut]]\nkind = "oak"\n\n'
    assert parse(text).as_string() == expected


def test_header_behind_an_unterminated_array_of_tables_within_a_table():
    text = '[t]\n[[t.fruit]]\nname = "apple"\n\n[[t.nut]]\nkind = "oak"\n\n[[t.fruit]]\nname = "pear"'
    expected = '[t]\n[[t.fruit]]\nname = "apple"\n\n[[t.fruit]]\nname = "pear"\n[[t.nut]]\nkind = "oak"\n\n'
    assert parse(text).as_string() == expected


@pytest.mark.parametrize(
    "text",
    [
        'x = ["0" , "1" , "2"]\n',
        'x = [\n  "0", # zero\n  "1", # one\n  "2", # two\n]\n',
        'x = [\n  "0" # zero\n  , "1" # one\n  , "2" # two\n]\n',
        'x = [\n  "0"\n  ,"1"\n  ,"2"\n]\n',
        'x = [\n  # before\n  "0",\n  # between\n  "1",\n  "2"\n  # behind\n]\n',
        'x = [\n  "0", "1",\n  "2",\n]\n',
    ],
)
def test_removing_any_item_of_an_array(text):
    assert parse(text).as_string() == text
    for i in range(3):
        doc = parse(text)
        del doc["x"][i]
        rest = [v for v in ["0", "1", "2"] if v != str(i)]
        assert parse(doc.as_string()).unwrap()["x"] == rest


def test_item_of_tables_and_arrays():
    doc = parse("[foo]\nvalue = false\narray = [true, 2]\ninline = {a = true, b = 3}\n")
    foo = doc["foo"]
    assert foo["value"] is False
    assert foo["array"][0] is True
    assert foo["inline"]["a"] is True
    assert isinstance(foo.item("value"), Bool)
    assert isinstance(foo["array"].item(0), Bool)
    assert isinstance(foo["array"].item(-1), Integer)
    assert isinstance(foo["inline"].item("a"), Bool)


def test_plain_key_in_front_of_the_only_header():
    doc = parse("[one]\na = 1\n")
    doc["zero"] = 0
    assert doc.as_string() == "zero = 0\n\n[one]\na = 1\n"
