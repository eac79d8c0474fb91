import pytest

from scenarios.formats.secrets import is_credential

CREDENTIALS = [
    ("API_KEY", "abc"),
    ("OPENAI_API_KEY", "x"),
    ("GITHUB_TOKEN", "abc"),
    ("DB_PASSWORD", "abc"),
    ("client-secret", "abc"),
    ("X", "sk-proj-abcdefghijklmnop"),
    ("X", "ghp_abcdefghijklmnopqrst0123"),
    ("X", "AKIAABCDEFGHIJKLMNOP"),
    ("X", "Bearer abcdefghijkl"),
    ("X", "sk-proj-abcdefghijklmnop${REST}"),
    ("X", "-----BEGIN RSA PRIVATE KEY-----"),
]
HARMLESS = [
    ("API_KEY", "${API_KEY}"),
    ("API_KEY", "${{ API_KEY }}"),
    ("API_KEY", ""),
    ("AUTHORIZATION", "Bearer ${TOKEN}"),
    ("KEYBOARD", "qwerty"),
    ("MONKEY", "x"),
    ("AUTHOR", "Ann"),
    ("TOKEN_FILE", "/run/token"),
    ("TOKENIZERS_PARALLELISM", "false"),
    ("X", "sk-short"),
]


@pytest.mark.parametrize(("name", "value"), CREDENTIALS)
def test_it_finds_credentials(name, value):
    assert is_credential(name, value)


@pytest.mark.parametrize(("name", "value"), HARMLESS)
def test_it_lets_others_be(name, value):
    assert not is_credential(name, value)
