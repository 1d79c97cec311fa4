import pytest

import sqlparse
from sqlparse import keywords
from sqlparse import tokens as T
from sqlparse.lexer import Lexer


def flat(sql):
    return [(token.ttype, token.value) for token in sqlparse.parse(sql)[0].flatten()]


def test_create_or_replace_is_one_token():
    assert flat('create or replace view v')[0] == (T.DDL, 'create or replace')


def test_hexadecimal_number():
    assert flat('0x1F') == [(T.Number.Hexadecimal, '0x1F')]


@pytest.mark.parametrize('sql, ttype', [
    ('/*+ full(t) */', T.Comment.Multiline.Hint),
    ('--+ full(t)\n', T.Comment.Single.Hint),
])
def test_hints(sql, ttype):
    assert flat(sql) == [(ttype, sql)]


def test_default_instance_is_shared():
    lex = Lexer.get_default_instance()
    assert Lexer.get_default_instance() is lex
    try:
        lex.add_keywords({'BACON': T.Name.Builtin})
        assert flat('bacon') == [(T.Name.Builtin, 'bacon')]
        assert Lexer.get_default_instance() is lex
        assert sqlparse.split('bacon; bacon') == ['bacon;', 'bacon']
    finally:
        lex.default_initialization()
    assert flat('bacon') == [(T.Name, 'bacon')]


def test_keywords_are_consulted_in_the_order_of_addition():
    lex = Lexer.get_default_instance()
    try:
        lex.add_keywords({'SPAM': T.Keyword})
        lex.add_keywords({'SPAM': T.Name.Builtin, 'EGGS': T.Name.Builtin})
        assert flat('spam') == [(T.Keyword, 'spam')]
        assert flat('eggs') == [(T.Name.Builtin, 'eggs')]
    finally:
        lex.default_initialization()
    assert flat('spam') == [(T.Name, 'spam')]


def test_clear_drops_patterns_and_keywords():
    lex = Lexer.get_default_instance()
    try:
        lex.clear()
        lex.set_SQL_REGEX(keywords.SQL_REGEX)
        assert flat('ilike') == [(T.Operator.Comparison, 'ilike')]
        assert flat('select') == [(T.Name, 'select')]
    finally:
        lex.default_initialization()
    assert flat('select') == [(T.DML, 'select')]


@pytest.mark.parametrize('sql', ['a in (1, 2)', 'a not in (1, 2)'])
def test_in_is_a_keyword(sql):
    statement = sqlparse.parse(sql)[0]
    token = [t for t in statement.flatten() if t.value == 'in'][0]
    assert token.ttype is T.Keyword
    assert [t.value for t in statement.flatten() if t.value == 'not in'] == []
    assert not any(isinstance(t, sqlparse.sql.Comparison) for t in statement.tokens)


@pytest.mark.parametrize('sql, expected', [
    ('with a as (select 1), /* b */ b as (select 2) insert into c select 1', 'INSERT'),
    ('with a as (select 1) -- b\n, b as (select 2) update c set d = 1', 'UPDATE'),
    ('with a as (select 1), -- b\n b as (select 2)', 'UNKNOWN'),
    ('with', 'UNKNOWN'),
])
def test_type_of_a_statement_with_a_comment_between_two_ctes(sql, expected):
    assert sqlparse.parse(sql)[0].get_type() == expected
