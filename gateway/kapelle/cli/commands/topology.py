"""`kapelle topology`: show the processors and the streams between them."""

from kapelle.cli.options.output import ChartForm, ChartOutput
from kapelle.cli.options.target import TOPOLOGY, Target, takes_target
from kapelle.cli.text import output
from kapelle.topology.describe import as_data, as_mermaid, as_text, describe


@takes_target(*TOPOLOGY)
def topology(
    *,
    target: Target,
    form: ChartOutput = ChartForm.TEXT,
) -> None:
    """Show processors, their tables and the streams between them.

    This reads the code only. It does not connect to Kafka.

    \b
    Examples:
      kapelle topology
      kapelle topology --app shop.processors:topology
      kapelle topology -o mermaid > topology.mmd
      kapelle topology -o json
    """
    described = describe(target.topology())
    output.show(
        described,
        form,
        lambda product: output.data(as_text(product)),
        mermaid=lambda product: output.data(as_mermaid(product)),
        json=lambda product: output.json(as_data(product)),
    )
    if not described.processors:
        output.say(f"{target.app} has no processors")
