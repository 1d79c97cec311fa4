import click
from click.shell_completion import BashComplete


def test_version_option(runner):
    @click.command()
    @click.version_option("1.2", prog_name="tool")
    def cli():
        pass

    result = runner.invoke(cli, ["--version"])
    assert result.exit_code == 0
    assert result.output == "tool, version 1.2\n"


def test_version_option_message(runner):
    @click.command()
    @click.version_option("1.2", package_name="box", message="%(package)s %(version)s")
    def cli():
        pass

    result = runner.invoke(cli, ["--version"])
    assert result.output == "box 1.2\n"


def test_echo_via_pager_without_terminal(runner):
    @click.command()
    def cli():
        click.echo_via_pager("one\ntwo")

    result = runner.invoke(cli)
    assert result.output == "one\ntwo\n"


def test_completion_variable_of_a_name_with_dashes(runner):
    @click.command()
    def cli():
        click.echo("called")

    env = {"_MY_TOOL_COMPLETE": "zsh_source"}
    result = runner.invoke(cli, prog_name="my-tool", env=env)
    assert result.output.startswith("#compdef my-tool\n")


def test_bash_completion_source():
    cli = click.Command("cli")
    source = BashComplete(cli, {}, "cli", "_CLI_COMPLETE").source()
    assert source.startswith("_cli_completion() {\n")
