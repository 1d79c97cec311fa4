"""A loop of asyncio: a timeout, a timer, a program that takes too long."""

import asyncio
import time
from contextlib import suppress

from tell import now, waits


async def main() -> None:
    with waits(), suppress(TimeoutError):
        await asyncio.wait_for(asyncio.sleep(20), 0.2)
    with waits():
        done = asyncio.Event()
        asyncio.get_running_loop().call_later(0.2, done.set)
        await done.wait()
    program = await asyncio.create_subprocess_exec("sleep", "20")
    with waits():
        try:
            await asyncio.wait_for(program.wait(), 0.2)
        except TimeoutError:
            program.kill()
            await program.wait()
    now(time.time())


asyncio.run(main())
