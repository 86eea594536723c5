# SPDX-License-Identifier: Apache-2.0
"""The commands of store.py that harm objects, and undo the harm."""

import hashlib


def harm(store, word, text=""):
    """Carries out a command about the objects whose names contain a text."""
    def has(key):
        return key.endswith(text[:-1]) if text.endswith("$") else text in str(key)
    found = [key for key in store.objects if has(key)]
    if word == "names":
        return " ".join(found)
    if word == "save":
        store.saved = text, {key: dict(store.objects[key]) for key in found}
    if word == "undo":
        text, saved = store.saved
        store.objects = {key: one for key, one in store.objects.items() if not has(key)}
        store.objects.update({key: dict(one) for key, one in saved.items()})
    for key in found if word in ("lose", "rot", "cut", "replace") else []:
        data = bytearray(store.objects[key]["data"])
        if word == "lose":
            del store.objects[key]
            continue
        if word == "cut":
            data = data[:len(data) // 2]
        else:  # The middle byte; again, it is changed back.
            data[len(data) // 2] ^= 1
        store.objects[key]["data"] = bytes(data)
        if word == "replace":  # As by the put of another program.
            store.objects[key]["etag"] = '"' + hashlib.md5(data).hexdigest() + '"'
    return str(len(found))
