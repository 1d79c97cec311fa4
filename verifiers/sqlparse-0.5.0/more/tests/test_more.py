import pytest

import sqlparse
from sqlparse import cli
from sqlparse import tokens as T
from sqlparse.exceptions import SQLParseError


def test_command_line_is_not_compact_by_default(tmp_path, capsys):
    place = tmp_path / 'query.sql'
    place.write_text('case when foo then 1 else bar end')
    assert cli.main([str(place), '--reindent']) == 0
    out, _ = capsys.readouterr()
    assert out == 'case\n    when foo then 1\n    else bar\nend'


def test_comments_on_lines_of_their_own_are_stripped_as_one():
    sql = '/* one */\n/* two */\nselect'
    assert sqlparse.format(sql, strip_comments=True) == 'select'


def test_whitespace_before_a_closing_parenthesis():
    sql = 'select ( select 1 where a = 2 \n ) x'
    assert sqlparse.format(sql, strip_whitespace=True) == 'select (select 1 where a = 2) x'


def test_split_keeps_blocks_with_several_cases():
    trigger = (
        'CREATE TRIGGER trg AFTER UPDATE OF col ON t\n'
        'BEGIN\n'
        '    UPDATE a SET x = (CASE WHEN (A=1) THEN 2 END);\n'
        '    UPDATE b SET y = CASE WHEN B=1 THEN 5 ELSE 6 END, z = CASE WHEN C=1 THEN 7 END;\n'
        '    UPDATE c SET y = (CASE WHEN (B=1) THEN 5 END);\n'
        'END;'
    )
    other = 'SELECT CASE WHEN a THEN 1 END FROM t;'
    assert sqlparse.split(trigger + '\n' + other) == [trigger, other]


@pytest.mark.parametrize('sql', [
    'desc', 'nulls  first', 'asc\tnulls last', 'DESC\nNULLS LAST',
])
def test_sort_order_is_one_token(sql):
    tokens = sqlparse.parse(sql)[0].tokens
    assert len(tokens) == 1
    assert tokens[0].ttype is T.Keyword.Order


@pytest.mark.parametrize('value', ['yes', None, 2])
def test_compact_requires_a_boolean(value):
    with pytest.raises(SQLParseError) as caught:
        sqlparse.format('foo', reindent=True, compact=value)
    assert str(caught.value) == 'compact requires a boolean value'


def test_compact_case_in_a_select():
    sql = 'select a, case when foo then 1 else bar end from t'
    assert sqlparse.format(sql, reindent=True, compact=True) == (
        'select a,\n       case when foo then 1 else bar end\nfrom t'
    )
