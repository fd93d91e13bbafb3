"""Settings of a client: from a file, from -X, and how they may be shown; and how commands get them."""

from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from kapelle.cli.errors import NoServers
from kapelle.cli.logs import LogFormat, LogLevel
from kapelle.cli.options.process import LOGS, RELAY, Process, takes_process
from kapelle.cli.options.target import KAFKA, TOPOLOGY, Target, properties, takes_target


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "client.properties"
    path.write_text(
        "# how we reach Kafka\n! and a comment as Java writes it\n\n"
        "bootstrap.servers = kafka-1:9092,kafka-2:9092\nsasl.password=a=b=c\n  linger.ms=5  \nclient.id=\n"
    )
    return path


def test_a_file_gives_a_setting_a_line_without_comments_and_blanks(file: Path) -> None:
    assert properties(file, ()) == {
        "bootstrap.servers": "kafka-1:9092,kafka-2:9092",
        "sasl.password": "a=b=c",
        "linger.ms": "5",
        "client.id": "",
    }


def test_a_setting_of_the_command_counts_before_that_of_the_file(file: Path) -> None:
    assert properties(file, ["linger.ms=7", "linger.ms=9"])["linger.ms"] == "9"


def test_the_file_may_say_where_kafka_is(file: Path) -> None:
    assert Target(config=file).kafka().bootstrap_servers == "kafka-1:9092,kafka-2:9092"


def test_the_flag_for_servers_counts_before_the_file(file: Path) -> None:
    kafka = Target(servers="127.0.0.1:9092", config=file).kafka()

    assert kafka.producer("id")["bootstrap.servers"] == "127.0.0.1:9092"


def test_without_servers_there_is_no_way_to_kafka() -> None:
    with pytest.raises(NoServers):
        Target().kafka()


def test_settings_reach_the_kind_of_client_that_they_are_for() -> None:
    kafka = Target(servers="k:1", extra=["client.id=me", "producer.linger.ms=7", "consumer.fetch.min.bytes=9"]).kafka()

    assert (kafka.producer("id")["client.id"], kafka.consumer("g")["client.id"]) == ("me", "me")
    assert kafka.producer("id")["linger.ms"] == "7"
    assert kafka.consumer("g")["fetch.min.bytes"] == "9"
    assert "fetch.min.bytes" not in kafka.producer("id")


def test_the_client_is_silent_unless_it_is_asked_to_speak() -> None:
    assert Target(servers="k:1").kafka().admin()["log_level"] == "0"
    assert Target(servers="k:1", extra=["log_level=7"]).kafka().admin()["log_level"] == "7"


def test_a_command_to_copy_has_the_same_options_and_no_secrets() -> None:
    target = Target(
        servers="k:1",
        app="shop:topology",
        prefix="shop",
        partitions=4,
        config=Path("my client.properties"),
        extra=["sasl.password=hunter2", "client.id=me"],
    )

    assert target.command("topics", "apply") == (
        "kapelle topics apply --bootstrap-servers k:1 --app shop:topology --prefix shop --partitions 4 "
        "--config 'my client.properties' -X 'sasl.password=•••' -X client.id=me"
    )


def test_a_command_to_copy_leaves_out_what_was_not_given() -> None:
    assert Target(servers="k:1").command("topics", "plan") == "kapelle topics plan --bootstrap-servers k:1"


def test_a_command_gets_one_target_of_its_options() -> None:
    app, taken = typer.Typer(rich_markup_mode=None), []

    @app.command()
    @takes_target(*KAFKA)
    def look(name: str, *, target: Target, count: Annotated[int, typer.Option("--count")] = 1) -> None:
        taken.append((name, target, count))

    words = ["orders", "--bootstrap-servers", "k:1", "--prefix", "shop", "-X", "a=1", "-X", "b=2", "--count", "3"]
    result = CliRunner().invoke(app, words)

    assert result.exit_code == 0, result.output
    assert taken == [("orders", Target(servers="k:1", prefix="shop", extra=["a=1", "b=2"]), 3)]


def test_options_of_a_target_stand_in_its_place_and_no_others_are_taken() -> None:
    app = typer.Typer(rich_markup_mode=None)

    @app.command()
    @takes_target(*TOPOLOGY)
    def look(
        *,
        before: Annotated[int, typer.Option("--before")] = 1,
        target: Target,
        after: Annotated[int, typer.Option("--after")] = 1,
    ) -> None:
        """Look at nothing."""

    told = CliRunner().invoke(app, ["--help"]).stdout
    refused = CliRunner().invoke(app, ["--bootstrap-servers", "k:1"])

    places = [told.index(f"\n  {flag} ") for flag in ("--before", "--app", "--prefix", "--partitions", "--after")]
    assert places == sorted(places)
    assert refused.exit_code == 2


def test_a_command_gets_its_target_and_its_process_each_of_its_own_options() -> None:
    app, taken = typer.Typer(rich_markup_mode=None), []

    @app.command()
    @takes_target(*KAFKA)
    @takes_process(*RELAY)
    def relay(*, target: Target, process: Process) -> None:
        taken.append((target, process))

    words = ["--bootstrap-servers", "k:1", "--metrics-port", "0", "--log-format", "json", "--session-timeout-ms", "900"]
    result = CliRunner().invoke(app, words)

    assert result.exit_code == 0, result.output
    expected = Process(session_timeout_ms=900, metrics_port=0, log_format=LogFormat.JSON)
    assert taken == [(Target(servers="k:1"), expected)]


def test_a_command_can_have_its_own_default_for_an_option_of_a_process() -> None:
    app, taken = typer.Typer(rich_markup_mode=None), []

    @app.command()
    @takes_process(*LOGS, log_level=LogLevel.WARNING)
    def work(*, process: Process) -> None:
        taken.append(process)

    result = CliRunner().invoke(app, [])

    assert result.exit_code == 0, result.output
    assert taken == [Process(log_level=LogLevel.WARNING)]
