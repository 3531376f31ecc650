"""One example for each command, shown by its --help and in the reference."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import click

EXAMPLES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "up": "foliot up shop:worker",
        "api": "FOLIOT_PORT=8080 foliot api",
        "scheduler": "FOLIOT_METRICS_PORT=9100 foliot scheduler",
        "worker serve": "foliot worker shop:worker --queue reports=3 --queue default --concurrency 20",
        "worker list": "foliot worker list --state live",
        "worker drain": "foliot worker drain wrk_06w3dp5wc0400",
        "migrate": "foliot migrate",
        "doctor": "foliot doctor",
        "tenant create": "foliot tenant create growth",
        "tenant list": "foliot tenant list",
        "tenant weight": "foliot tenant weight growth 3",
        "tenant limit": "foliot tenant limit growth 100",
        "tenant rate": "foliot tenant rate growth",
        "tenant quota": "foliot tenant quota growth --jobs 1000 --backlog 100000",
        "key create": "foliot key create growth --name ci --role editor --expires P90D",
        "key list": "foliot key list growth --status active",
        "key rate": "foliot key rate key_06w3dp5wc0400",
        "key revoke": "foliot key revoke key_06w3dp5wc0400",
        "key rotate": "foliot key rotate key_06w3dp5wc0400 --overlap P7D",
        "bench": "foliot bench --seconds 3",
        "job create": 'foliot job create report https://reports.example/run --cron "0 9 * * MON-FRI" --key report',
        "job list": "foliot job list --status paused --label team=growth",
        "job get": "foliot job get job_06w3dp5wc0400",
        "job edit": "foliot job edit job_06w3dp5wc0400 --every PT1M --priority low --dry-run",
        "job run": 'foliot job run job_06w3dp5wc0400 --payload \'{"day": "2026-11-15"}\' --wait',
        "job pause": "foliot job pause job_06w3dp5wc0400",
        "job resume": "foliot job resume job_06w3dp5wc0400",
        "job delete": "foliot job delete job_06w3dp5wc0400",
        "job backfill": (
            "foliot job backfill job_06w3dp5wc0400 --from 2026-01-01T00:00:00Z --until 2026-01-10T00:00:00Z --dry-run"
        ),
        "job occurrences": "foliot job occurrences job_06w3dp5wc0400 --status missed",
        "job versions": "foliot job versions job_06w3dp5wc0400",
        "job explain": "foliot job explain job_06w3dp5wc0400",
        "run submit": "foliot run submit send_receipt --payload '{\"order\": 17}' --wait",
        "run list": "foliot run list --status failed --limit 10",
        "run get": "foliot run get run_06w3dpprm0800",
        "run graph": "foliot run graph run_06w3dpprm0800",
        "run transitions": "foliot run transitions run_06w3dpprm0800",
        "run retry": "foliot run retry run_06w3dpprm0800",
        "run cancel": "foliot run cancel run_06w3dpprm0800",
        "run explain": "foliot run explain run_06w3dpprm0800",
        "dead list": "foliot dead list --error-class http:503",
        "dead get": "foliot dead get run_06w3dpprm0800",
        "dead replay": "foliot dead replay --error-class http:503 --per-second 10 --wait",
        "dead discard": "foliot dead discard run_06w3dpprm0800",
        "gaps": "foliot gaps --since 2026-11-01T00:00:00Z",
        "schedule preview": 'foliot schedule preview --cron "0 2 * * *" --timezone Europe/Berlin',
        "operation list": "foliot operation list --status running",
        "operation get": "foliot operation get op_06w3dp5wc0400",
        "operation cancel": "foliot operation cancel op_06w3dp5wc0400",
        "calendar list": "foliot calendar list",
        "calendar get": "foliot calendar get de",
        "calendar set": "foliot calendar set de --timezone Europe/Berlin --business-days MON-FRI --holiday 2026-12-25",
        "calendar import": "foliot calendar import de holidays.ics",
        "calendar preview": "foliot calendar preview de",
        "calendar delete": "foliot calendar delete de",
        "queue list": "foliot queue list",
        "queue pause": "foliot queue pause reports",
        "queue resume": "foliot queue resume reports",
        "audit list": "foliot audit list --action pauseJob --since 2026-11-01T00:00:00Z",
        "audit verify": "foliot audit verify",
        "secret set": "foliot secret set smtp < smtp.password",
        "secret list": "foliot secret list",
        "secret delete": "foliot secret delete smtp",
        "encryption on": "foliot encryption on growth",
        "encryption off": "foliot encryption off growth",
        "encryption rotate": "foliot encryption rotate growth",
        "encryption status": "foliot encryption status",
        "apply": "foliot apply jobs.toml --dry-run",
        "top": "foliot top",
        "completion": "foliot completion bash",
    }
)
"""By the words after `foliot`."""


def with_examples(name: str, command: click.Command) -> click.Command:
    """The command, and all below it, each with its example at the end of its help."""
    if name in EXAMPLES:
        command.epilog = f"\b\nExample:\n  {EXAMPLES[name]}"
    if isinstance(command, click.Group):
        for word, each in command.commands.items():
            with_examples(f"{name} {word}", each)
    return command
