"""The in-process host: one daemon thread, one event loop, every engine of this process on it.

Sync and async callers on any thread or loop hand it coroutines and wait for their results. Cancelling the waiting side
cancels the coroutine, and with it the engine's request. Where engines come from is the host's source: made here, or
served elsewhere and only seen from here (`accel.backend`).
"""

import asyncio
import atexit
import concurrent.futures
import contextlib
import contextvars
import logging
import multiprocessing.util  # noqa: F401  its exit hook kills child processes; older than ours, it runs after ours
import os
import queue
import signal
import sys
import threading
import time
import weakref
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from types import FrameType
from typing import Any, TypeVar, cast

from accel.engine import Engine, EngineConfig, cancel_token
from accel.engine.profile import Profile
from accel.errors import CallCancelled, EngineClosed
from accel.process import forks
from accel_local.replicas import has_stopped
from accel_local.sources import EngineSource, InProcess

log = logging.getLogger("accel.local")

T = TypeVar("T")
E = TypeVar("E", bound=Engine)


class Host:
    """The engines on one loop: a given one with its thread, or one on a thread of its own.

    All state is confined to the loop, except `ready`, which other threads only read.
    """

    def __init__(
        self,
        source: EngineSource,
        loop: asyncio.AbstractEventLoop | None = None,
        thread: threading.Thread | None = None,
    ) -> None:
        self.source = source
        self.loop = loop or asyncio.new_event_loop()
        self.ready: dict[EngineConfig[Any], Engine] = {}
        self._starts: dict[EngineConfig[Any], asyncio.Task[Engine]] = {}  # oldest first
        self._closing = False
        self.parents = False
        """This process was forked from the one that serves here: its engines are not ours to use or to close."""
        _hosts.add(self)
        self.thread = thread or threading.current_thread()
        if loop is None:
            self.thread = threading.Thread(target=self._run, name="accel-local", daemon=True)
            self.thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        self.loop.close()

    async def engine(self, config: EngineConfig[E]) -> E:
        """The started engine of `config`. A start that failed is forgotten, so that it can be tried again; an engine
        that has stopped by itself is closed, and another one takes its place."""
        if self._closing:
            raise EngineClosed("Accel's engines are being shut down.")
        start = self._starts.get(config)
        if start is None or (config in self.ready and has_stopped(self.ready[config])):
            stopped = self._starts.pop(config, None)
            self.ready.pop(config, None)
            # An empty context: an engine must not carry the ContextVars of whoever happened to need it first.
            start = self.loop.create_task(self._start(config, stopped), context=contextvars.Context())
            start.add_done_callback(lambda done: self._forget_failure(config, done))
            self._starts[config] = start
        return cast(E, await asyncio.shield(start))

    async def _start(self, config: EngineConfig[Any], stopped: "asyncio.Task[Engine] | None") -> Engine:
        if stopped is not None:
            log.warning("%s has stopped", config.label)
            await self._close(config, stopped)  # first: there may not be room for two
        began = time.monotonic()
        log.info("starting %s", config.label)
        engine = await self.source.start(config)
        _close_first_at_exit()
        log.info("%s is ready after %.1f s", config.label, time.monotonic() - began)
        self.ready[config] = engine
        return engine

    def _forget_failure(self, config: EngineConfig[Any], done: "asyncio.Task[Engine]") -> None:
        if (done.cancelled() or done.exception() is not None) and self._starts.get(config) is done:
            del self._starts[config]

    async def close(self) -> None:
        self._closing = True
        for config, start in reversed(list(self._starts.items())):
            await self._close(config, start)

    async def close_engine(self, config: EngineConfig[Any]) -> None:
        """Close the engine of `config`, if there is one; the next use starts another."""
        start = self._starts.pop(config, None)
        if start is not None:
            await self._close(config, start)

    async def _close(self, config: EngineConfig[Any], start: "asyncio.Task[Engine]") -> None:
        self.ready.pop(config, None)
        start.cancel()
        try:
            engine = await start
            await engine.close()
            log.debug("closed %s", config.label)
        except asyncio.CancelledError:
            return  # it was still starting, and has cleaned up
        except Exception:
            # The others must be closed all the same.
            log.exception("closing %s failed", config.label)

    def stop(self, timeout_s: float) -> None:
        """Close all engines, youngest first, and end the loop's thread. Not for a loop of the calling thread."""
        if self.parents or self.loop.is_closed():
            return
        closing = asyncio.run_coroutine_threadsafe(self.close(), self.loop)
        try:
            closing.result(timeout=timeout_s)
        except concurrent.futures.TimeoutError:
            log.warning("some engines did not close within %.0f s", timeout_s)
        finally:
            self.loop.call_soon_threadsafe(_cancel_rest_and_stop, self.loop)
            self.thread.join(timeout=5)
            self.source.close()


SHUTDOWN_S = 30.0
IN_PROCESS = InProcess()
_source: EngineSource = IN_PROCESS
"""Of the host that is started next."""
_host: Host | None = None
_suspended: list[Host] = []
"""Those that serve again when `served_by` ends."""
_host_lock = forks.lock()
_hosts: weakref.WeakSet[Host] = weakref.WeakSet()
_kept: list[Host] = []
"""The parent's: finalising them could end its engines."""


@forks.in_child
def _leave_to_parent() -> None:
    """A forked child starts engines of its own, when it needs one."""
    global _host
    for host in list(_hosts):
        host.parents = True
        _kept.append(host)
    _host = None
    _suspended.clear()


def _get_host() -> Host:
    global _host
    with _host_lock:
        if _host is None or _host.parents or _host.loop.is_closed():
            _host = Host(_source)
            _close_first_at_exit()
            _show_progress()
        return _host


def engine(config: EngineConfig[E]) -> E:
    """The engine of `config`, started if need be (blocks; seconds to a minute). Raises EngineStartError and kin."""
    host = _get_host()
    prepare()
    ready = host.ready.get(config)
    return cast(E, ready) if ready is not None and not has_stopped(ready) else run(host.engine(config))


async def aengine(config: EngineConfig[E]) -> E:
    """`engine` for callers on any event loop."""
    host = _get_host()
    prepare()
    ready = host.ready.get(config)
    return cast(E, ready) if ready is not None and not has_stopped(ready) else await arun(host.engine(config))


def known_profile(config: EngineConfig[Any]) -> Profile | None:
    """What is known about the speed of the engine of `config`, running or not; measures and starts nothing."""
    host = _host
    ready = host.ready.get(config) if host is not None else None
    if ready is not None:
        return ready.known_profile
    return (host.source if host is not None else _source).known_profile(config)


def running() -> list[str]:
    """Labels of the engines that are up."""
    return [config.label for config in list(_host.ready)] if _host is not None else []


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run on the host's loop and wait. The caller's `cancel_token` aborts it: then raises CallCancelled."""
    host = _get_host()
    if threading.current_thread() is host.thread:
        work.close()
        raise RuntimeError("A blocking call on the engines' own event loop would wait for itself; await arun() there.")
    token = cancel_token.get()
    if token is not None and token.cancelled:
        work.close()
        raise CallCancelled
    future = asyncio.run_coroutine_threadsafe(work, host.loop)
    forget = token.on_cancel(lambda: _cancel(future)) if token is not None else None
    try:
        return future.result()
    except concurrent.futures.CancelledError:
        raise _why_cancelled() from None
    finally:
        if forget is not None:
            forget()
        future.cancel()  # only does something if the wait itself was interrupted, by Ctrl-C


async def arun(work: Coroutine[Any, Any, T]) -> T:
    """Run on the host's loop and await from any loop. Cancelling the awaiting task cancels the work."""
    host = _get_host()
    if asyncio.get_running_loop() is host.loop:
        return await work
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, host.loop))


def stream(source: AsyncGenerator[T, None]) -> Generator[T, None, None]:
    """Iterate a host-side generator from a thread. Leaving the loop early, or the `cancel_token`, aborts it."""
    host = _get_host()
    token = cancel_token.get()
    items: queue.SimpleQueue[T | None] = queue.SimpleQueue()
    future = asyncio.run_coroutine_threadsafe(_pump(source, items.put), host.loop)
    future.add_done_callback(lambda _: items.put(None))
    forget = token.on_cancel(lambda: _cancel(future)) if token is not None else None
    try:
        while (item := items.get()) is not None:
            yield item
        future.result()
    except concurrent.futures.CancelledError:
        raise _why_cancelled() from None
    finally:
        if forget is not None:
            forget()
        future.cancel()


async def astream(source: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
    """Iterate a host-side generator from any loop. Closing this generator, or cancelling its task, aborts it."""
    host, loop = _get_host(), asyncio.get_running_loop()
    if loop is host.loop:
        async with contextlib.aclosing(source):
            async for produced in source:
                yield produced
        return
    items: asyncio.Queue[T | None] = asyncio.Queue()

    def put(item: T | None) -> None:
        try:
            loop.call_soon_threadsafe(items.put_nowait, item)
        except RuntimeError:  # the consumer's loop is closed: nobody waits any more
            future.cancel()

    future = asyncio.run_coroutine_threadsafe(_pump(source, put), host.loop)
    future.add_done_callback(lambda _: put(None))
    try:
        while (item := await items.get()) is not None:
            yield item
        future.result()
    except concurrent.futures.CancelledError:
        raise _why_cancelled() from None
    finally:
        future.cancel()


async def _pump(source: AsyncGenerator[T, None], put: Callable[[T], None]) -> None:
    try:
        async for item in source:
            put(item)
    finally:
        await source.aclose()


def _cancel(future: "concurrent.futures.Future[Any]") -> None:
    future.cancel()


def _why_cancelled() -> Exception:
    token = cancel_token.get()
    if token is not None and token.cancelled:
        return CallCancelled()
    return EngineClosed("The engines were shut down during the call.")


@contextlib.contextmanager
def hosted_on(loop: asyncio.AbstractEventLoop, thread: threading.Thread | None = None) -> Generator[None, None, None]:
    """Serve engines on this loop meanwhile, instead of on one of their own; then close them.

    It is the calling thread's, or runs on another `thread`: for simulations, whose clock is the loop's (`accel_sim`).
    """
    global _host
    with _host_lock:
        before, _host = _host, Host(IN_PROCESS, loop, thread)
        here = _host
    try:
        yield
    finally:
        try:
            if here.parents:
                pass
            elif thread is not None:
                asyncio.run_coroutine_threadsafe(here.close(), loop).result()
            else:
                loop.run_until_complete(here.close())
        finally:
            with _host_lock:
                _host = before


def source() -> EngineSource:
    """Where the engines of this process come from."""
    return _host.source if _host is not None else _source


def use(source: EngineSource) -> None:
    """From now on this process takes its engines from `source`; those it has now are closed."""
    global _source
    shutdown()
    with _host_lock:
        _source = source


@contextlib.contextmanager
def served_by(source: EngineSource) -> Generator[None, None, None]:
    """Take engines from `source` meanwhile, in the whole process, and let go of them then. The engines that are up
    now stay up, and serve again afterwards."""
    global _host, _source
    with _host_lock:
        before, source_before = _host, _source
        _host, _source = None, source
        if before is not None:
            _suspended.append(before)
    try:
        yield
    finally:
        with _host_lock:
            here, _host, _source = _host, before, source_before
            if before in _suspended:
                _suspended.remove(before)
        if here is not None:
            here.stop(SHUTDOWN_S)
        else:
            source.close()


def shutdown(timeout_s: float = SHUTDOWN_S) -> None:
    """Close all engines, youngest first, and stop the host. Idempotent; a later use starts a new host."""
    global _host
    with _host_lock:
        hosts = [host for host in (_host, *reversed(_suspended)) if host is not None]
        _host = None
        _suspended.clear()
    for host in hosts:
        host.stop(timeout_s)


def _cancel_rest_and_stop(loop: asyncio.AbstractEventLoop) -> None:
    """Calls still waiting for an engine that is gone must not wait for ever."""
    rest = asyncio.all_tasks(loop)
    for task in rest:
        task.cancel()
    stopping = asyncio.gather(*rest, return_exceptions=True)
    stopping.add_done_callback(lambda _: loop.stop())
    if not rest:
        loop.stop()


def _close_first_at_exit() -> None:
    """Exit hooks run youngest first: ours must be younger than those of the libraries that an engine has imported."""
    atexit.unregister(shutdown)
    atexit.register(shutdown)


def prepare() -> None:
    """Called where engines are configured: if this is the main thread, SIGTERM closes engines before it ends us.

    A handler that the program installed itself is left alone; it ends in interpreter exit, and so in `shutdown`.
    """
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        return

    def terminate(number: int, frame: FrameType | None) -> None:
        shutdown()  # a forked child inherits the handler, but not the engines
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)

    signal.signal(signal.SIGTERM, terminate)


def _show_progress() -> None:
    """Starting an engine takes long: unless the program configured logging itself, say so on stderr."""
    if log.hasHandlers():
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("accel: %(message)s"))
    log.addHandler(handler)
    log.setLevel(logging.INFO)
