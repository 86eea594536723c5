#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A proxy on the loopback interface between a client and an S3-compatible store.

  proxy.py HOST:PORT

It counts the requests, makes the store more distant, and makes requests fail. It prints `port N`,
and then obeys commands on standard input, each answered by a line:

  set NAME VALUE   a setting: delay_ms, the time of a round trip; rate_mib, how many MiB the answers
                   of all connections may have in a second, 0 for no limit; cut, busy, lost and
                   stall, the probability that a request's connection is cut in the middle of
                   the answer, that it is answered by status 503, that it is carried out and its
                   answer lost, and that it is never answered; max_faults, after how many of them
                   there are no more
  port             opens another port with counts of its own, and prints its number
  counts [PORT]    prints the counts as JSON: by kind and folder of the object (such as "get seg"),
                   requests and bytes of bodies, sent and received
  reset [PORT]     sets the counts to 0
  at N COMMAND     runs a shell command before the N-th request from now on is sent
  forget           forgets the commands that have not run
It ends with its standard input.
"""

import asyncio
import collections
import json
import random
import re
import subprocess
import sys

CHUNK = 1 << 18
BUSY = b"<Error><Code>SlowDown</Code><Message>slow down</Message></Error>"


class Settings:
    delay_ms = rate_mib = cut = busy = lost = stall = 0.0
    max_faults = 1e9


class Proxy:
    def __init__(self, host, port):
        self.target = (host, int(port))
        self.settings, self.faults = Settings(), 0
        self.counts = {}
        self.requests, self.commands = 0, {}
        self.idle_at = 0.0  # When the answers so far have passed, with a limited rate.
        self.random = random.Random(1)

    async def open_port(self):
        counts = collections.defaultdict(lambda: [0, 0, 0])

        async def serve(reader, writer):
            await self.serve(reader, writer, counts)

        server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=1 << 20)
        port = server.sockets[0].getsockname()[1]
        self.counts[port] = counts
        return port

    @staticmethod
    def kind_of(method, target):
        path, _, query = target.partition("?")
        parts = [part for part in path.split("/") if part]
        words = [word.partition("=")[0] for word in query.split("&")]
        if method == "GET" and (len(parts) < 2 or "list-type" in words or "uploads" in words):
            return "list"
        folder = parts[-2] if len(parts) > 3 else "top"
        if re.fullmatch("[0-9a-f]{2}", folder):  # Those of restic's data.
            folder = "data"
        return f"{'copy' if 'partNumber' in words else method.lower()} {folder}"

    def roll(self, probability):
        if probability <= 0 or self.faults >= self.settings.max_faults:
            return False
        if self.random.random() >= probability:
            return False
        self.faults += 1
        return True

    async def run_command(self):
        self.requests += 1
        command = self.commands.pop(self.requests, None)
        if command:
            process = await asyncio.create_subprocess_shell(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            await process.wait()

    async def serve(self, reader, writer, counts):
        upstream = None
        try:
            await asyncio.sleep(self.settings.delay_ms / 1000)  # The connection's own round trip.
            upstream = await asyncio.open_connection(*self.target, limit=1 << 20)
            while await self.one(reader, writer, upstream, counts):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            for end in (writer, upstream and upstream[1]):
                if end:
                    end.close()

    @staticmethod
    def parse(head):
        lines = head.decode("latin-1").split("\r\n")
        fields = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            fields[name.strip().lower()] = value.strip()
        return lines[0], fields

    async def one(self, reader, writer, upstream, counts):
        up_reader, up_writer = upstream
        head = await reader.readuntil(b"\r\n\r\n")
        line, fields = self.parse(head)
        method, target, _ = line.split(" ", 2)
        count = counts[self.kind_of(method, target)]
        count[0] += 1
        length = int(fields.get("content-length", 0))
        await self.run_command()
        if self.roll(self.settings.stall):
            await asyncio.sleep(3600)
        if self.roll(self.settings.busy):
            await self.skip(reader, length)
            writer.write(b"HTTP/1.1 503 Slow Down\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
                         % len(BUSY) + (b"" if method == "HEAD" else BUSY))
            await writer.drain()
            return False
        lost, cut = self.roll(self.settings.lost), self.roll(self.settings.cut)
        up_writer.write(head)
        sent = await self.pass_on(reader, up_writer, length)
        count[1] += sent  # Other requests count meanwhile.
        status = 100
        while status == 100:
            head = await up_reader.readuntil(b"\r\n\r\n")
            line, fields = self.parse(head)
            status = int(line.split(" ")[1])
        await asyncio.sleep(self.settings.delay_ms / 1000)
        if lost:
            return False
        writer.write(head)
        if method == "HEAD" or status in (204, 304):
            await writer.drain()
            return True
        if "content-length" in fields:
            length = int(fields["content-length"])
            passed = await self.pass_on(up_reader, writer, length // 2 if cut else length,
                                        self.keep_rate)
        else:
            passed = await self.pass_chunks(up_reader, writer)
        count[2] += passed
        return not cut and fields.get("connection", "").lower() != "close"

    @staticmethod
    async def skip(reader, length):
        while length:
            length -= len(await reader.readexactly(min(length, CHUNK)))

    async def keep_rate(self, size):
        if self.settings.rate_mib <= 0:
            return
        now = asyncio.get_running_loop().time()
        self.idle_at = max(self.idle_at, now) + size / self.settings.rate_mib / (1 << 20)
        await asyncio.sleep(self.idle_at - now)

    @staticmethod
    async def pass_on(reader, writer, length, before=None):
        passed = 0
        while passed < length:
            data = await reader.read(min(length - passed, CHUNK))
            if not data:
                raise ConnectionError
            if before:
                await before(len(data))
            writer.write(data)
            await writer.drain()
            passed += len(data)
        await writer.drain()
        return passed

    @staticmethod
    async def pass_chunks(reader, writer):
        passed = 0
        while True:
            line = await reader.readuntil(b"\r\n")
            size = int(line.split(b";")[0], 16)
            writer.write(line + await reader.readexactly(size + 2))
            await writer.drain()
            passed += size
            if size == 0:
                return passed

    async def obey(self, line):
        words = line.split()
        if words[0] == "set":
            setattr(self.settings, words[1], float(words[2]))
            self.faults = 0
            return "ok"
        if words[0] == "port":
            return str(await self.open_port())
        if words == ["forget"]:
            self.commands.clear()
            return "ok"
        if words[0] == "at":
            self.commands[self.requests + int(words[1])] = line.split(None, 2)[2]
            return "ok"
        port = int(words[1]) if len(words) > 1 else next(iter(self.counts))
        if words[0] == "reset":
            self.counts[port].clear()
            return "ok"
        return json.dumps({name: list(value) for name, value in self.counts[port].items()})

    async def main(self):
        print("port", await self.open_port(), flush=True)
        loop = asyncio.get_running_loop()
        commands = asyncio.StreamReader()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
        while line := await commands.readline():
            print(await self.obey(line.decode()), flush=True)


if __name__ == "__main__":
    asyncio.run(Proxy(*sys.argv[1].rsplit(":", 1)).main())
