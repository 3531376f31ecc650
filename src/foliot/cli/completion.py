"""`foliot completion`: what a shell needs to complete commands, options, ids and names."""

import click
from click.shell_completion import get_completion_class

from foliot.cli.output import as_json, say, wants_json

_VARIABLE = "_FOLIOT_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@wants_json
@click.pass_context
def completion(context: click.Context, shell: str, json: bool) -> None:
    """Print what makes SHELL complete commands, options, and the ids and names of what is there.

    bash: `eval "$(foliot completion bash)"` in ~/.bashrc. zsh: `eval "$(foliot completion zsh)"` in ~/.zshrc. fish:
    `foliot completion fish > ~/.config/fish/completions/foliot.fish`.
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"{shell} cannot be completed here")
    script = kind(context.find_root().command, {}, "foliot", _VARIABLE).source()
    if json:
        as_json({"shell": shell, "script": script})
    else:
        say(script)
