"""A Faust application: when orders have been loaded it announces a signal, which starts a report."""

import faust

from kapelle.faust import Kapelle
from kapelle.schemas.contracts import InstanceStatusChange

app = faust.App("reports", broker="kafka://127.0.0.1:9092", consumer_auto_offset_reset="earliest", web_enabled=False)
kapelle = Kapelle(app)


@app.agent(kapelle.instance_changes)
async def report(changes: faust.StreamT[InstanceStatusChange]) -> None:
    async for change in changes:
        print(f"{change.workflow_id}/{change.instance_id} {change.status}")
        if change.workflow_id == "load-orders" and change.status == "SUCCEEDED":
            await kapelle.announce("orders-loaded", id=f"load-orders/{change.sequence}")


if __name__ == "__main__":
    app.main()
