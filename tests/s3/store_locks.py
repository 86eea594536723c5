# SPDX-License-Identifier: Apache-2.0
"""Object lock and versions, for store.py: buckets of the kinds that its setting `lock_kind` has."""

import datetime
import xml.etree.ElementTree as ET


class Refused(Exception):
    def __init__(self, status, code, message="", more="", headers=()):
        super().__init__(code)
        self.status, self.code, self.message = status, code, message
        self.more, self.headers = more, headers


def is_locked(store, found):
    return found["lock"] is not None and found["lock"][1] > store.now()


def iso_time(text):
    form = "%Y-%m-%dT%H:%M:%SZ"
    return datetime.datetime.strptime(text, form).replace(tzinfo=datetime.timezone.utc).timestamp()


class Locks:
    """The requests about locks, as a part of the handler of store.py."""

    def wanted_lock(self):
        """Returns the mode and the end of the lock that the headers ask for."""
        mode = self.headers.get("x-amz-object-lock-mode")
        until = self.headers.get("x-amz-object-lock-retain-until-date")
        if mode is None and until is None:
            return None
        if not self.store.lock_kind:
            raise Refused(400, "InvalidRequest", "Bucket is missing Object Lock Configuration")
        if not self.headers.get("Content-MD5") and not self.headers.get("x-amz-checksum-sha256"):
            raise Refused(400, "InvalidRequest", "Content-MD5 is required with Object Lock")
        return self.checked_lock(mode, until)

    def checked_lock(self, mode, until):
        if mode not in ("GOVERNANCE", "COMPLIANCE") or iso_time(until) <= self.store.now():
            raise Refused(400, "InvalidArgument", "The retain until date must be in the future!")
        return None if self.store.lock_kind == 3 else (mode, iso_time(until))

    def put_aside(self, key):
        """Keeps the present version of an object that is replaced or removed."""
        old = self.store.objects.get(key)
        if old is None:
            return
        if self.store.lock_kind == 1:
            self.store.older.append((key, old))
        elif is_locked(self.store, old):
            raise Refused(403, "AccessDenied", "the object is locked")

    def extend_lock(self, key, body):
        found = self.find(key)
        if not self.store.lock_kind:
            raise Refused(400, "InvalidRequest", "Bucket is missing Object Lock Configuration")
        if not self.headers.get("Content-MD5") and not self.headers.get("x-amz-checksum-sha256"):
            raise Refused(400, "InvalidRequest", "Content-MD5 is required")
        space = "{http://s3.amazonaws.com/doc/2006-03-01/}"
        root = ET.fromstring(body)
        new = self.checked_lock(root.find(space + "Mode").text,
                                root.find(space + "RetainUntilDate").text)
        if new and is_locked(self.store, found) and (
                new[1] < found["lock"][1] or
                found["lock"][0] == "COMPLIANCE" and new[0] == "GOVERNANCE"):
            raise Refused(403, "AccessDenied", "a lock cannot be shortened")
        found["lock"] = new
        self.store.extensions += 1
        return 200, b"", {}

    def delete_version(self, key, version):
        if not self.store.removes:
            raise Refused(403, "AccessDenied")
        found = self.store.objects.get(key)
        if found and found["version"] == version:
            if is_locked(self.store, found):
                raise Refused(403, "AccessDenied", "the object is locked")
            del self.store.objects[key]
        self.store.older = [(k, o) for k, o in self.store.older
                            if k != key or o["version"] != version or is_locked(self.store, o)]
        return 204, b"", {}
