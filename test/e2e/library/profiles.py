# SPDX-License-Identifier: Apache-2.0
"""Decoders of pprof and OTLP profiles, written from the field numbers of their .proto files alone, for tests of the encoders.
Each answers plain dicts and lists; what a file must not have (an id twice, a number outside a table) ends the test."""
import gzip
import struct


class Malformed(Exception):
    pass


def need(true, what):
    if not true:
        raise Malformed(what)


def varint(data, at):
    value = shift = 0
    while True:
        need(at < len(data) and shift < 70, "a varint is cut")
        byte = data[at]
        at += 1
        value |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """Each field as (number, wire type, value)."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        wire = tag & 7
        need(tag >> 3 and wire in (0, 1, 2), "tag %d" % tag)
        if wire == 0:
            value, at = varint(data, at)
        elif wire == 1:
            need(at + 8 <= len(data), "a fixed64 is cut")
            value, at = struct.unpack_from("<Q", data, at)[0], at + 8
        else:
            n, at = varint(data, at)
            need(at + n <= len(data), "a message is cut")
            value, at = data[at:at + n], at + n
        yield tag >> 3, wire, value


def message(data):
    """Fields by number: lists of values."""
    found = {}
    for number, wire, value in fields(data):
        found.setdefault(number, []).append((wire, value))
    return found


def numbers(found, number):
    """A repeated integer, packed or not."""
    out = []
    for wire, value in found.get(number, []):
        if wire != 2:
            out.append(value)
            continue
        at = 0
        while at < len(value):
            one, at = varint(value, at)
            out.append(one)
    return out


def one(found, number, default=0):
    return found[number][-1][1] if number in found else default


def many(found, number):
    return [message(value) for _, value in found.get(number, [])]


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def by_id(messages, what):
    ids = {}
    for found in messages:
        number = one(found, 1)
        need(number and number not in ids, "%s %d" % (what, number))
        ids[number] = found
    return ids


def pprof(data):
    """types: [(type, unit)], samples: [{stack: [(function, file, line)] leaf first, values, labels}], and what else there is."""
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    top = message(data)
    strings = [value.decode() for _, value in top[6]]
    need(strings[0] == "", "the first text is not empty")
    types = [(strings[one(t, 1)], strings[one(t, 2)]) for t in many(top, 1)]
    functions = by_id(many(top, 5), "function")
    mappings = by_id(many(top, 3), "mapping")
    locations = by_id(many(top, 4), "location")
    places = {}
    for number, found in locations.items():
        need(one(found, 2) == 0 or one(found, 2) in mappings, "mapping of location %d" % number)
        lines = many(found, 4)
        for line in lines:
            need(one(line, 1) in functions, "function of location %d" % number)
        places[number] = [(strings[one(functions[one(line, 1)], 2)], strings[one(functions[one(line, 1)], 4)], one(line, 2))
                          for line in lines]
    samples = []
    for found in many(top, 2):
        ids, values = numbers(found, 1), [signed(v) for v in numbers(found, 2)]
        need(len(values) == len(types), "a sample has %d values" % len(values))
        labels = {}
        for label in many(found, 3):
            key = strings[one(label, 1)]
            need(key and key not in labels, "label %r twice" % key)
            labels[key] = strings[one(label, 2)] if 2 in label else one(label, 3)
        samples.append({"stack": [line for i in ids for line in places[i]], "places": ids, "values": values, "labels": labels})
    return {
        "types": types,
        "samples": samples,
        "mappings": [{"path": strings[one(m, 5)], "build_id": strings[one(m, 6)], "start": one(m, 2), "limit": one(m, 3),
                      "functions": bool(one(m, 7))} for m in mappings.values()],
        "addresses": {number: (one(found, 2), one(found, 3)) for number, found in locations.items()},
        "time_ns": one(top, 9),
        "duration_ns": one(top, 10),
        "period": one(top, 12),
        "comments": [strings[n] for n in numbers(top, 13)],
        "default": strings[one(top, 14)],
    }


def any_value(found):
    if 1 in found:
        return one(found, 1).decode()
    if 3 in found:
        return one(found, 3)
    if 5 in found:
        return [any_value(value) for value in many(message(one(found, 5)), 1)]
    return None


def otlp(data):
    """profiles: {type: {unit, samples, ...}}, resource: {key: value}. Samples as of pprof(), with one value and a link."""
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    top = message(data)
    need(len(top[2]) == 1, "one dictionary")
    words = message(one(top, 2))
    strings = [value.decode() for _, value in words[5]]
    need(strings[0] == "", "the first text is not empty")
    attributes = [(strings[one(a, 1)], any_value(message(one(a, 2, b"")))) for a in many(words, 6)]
    need(attributes[0] == ("", None), "the first attribute is not zero")
    need(not any(many(words, n)[0] for n in (1, 2, 3, 7)), "the first of each table is not zero")
    functions = [(strings[one(f, 1)], strings[one(f, 3)]) for f in many(words, 3)]
    links = [(one(link, 1), one(link, 2)) for link in many(words, 4)]
    need(links[0] == (bytes(16), bytes(8)), "the first link is not zero")
    n_mappings = len(many(words, 1))
    places = []
    for found in many(words, 2):
        need(one(found, 1) < n_mappings, "mapping of a location")
        places.append([(*functions[one(line, 1)], one(line, 2)) for line in many(found, 3)])
    stacks = [[line for i in numbers(found, 1) for line in places[i]] for found in many(words, 7)]
    profiles, resource = {}, {}
    for of_resource in many(top, 1):
        resource.update({one(a, 1).decode(): any_value(message(one(a, 2))) for a in many(message(one(of_resource, 1)), 1)})
        for of_scope in many(of_resource, 2):
            for found in many(of_scope, 2):
                kind = message(one(found, 1))
                samples = []
                for sample in many(found, 2):
                    labels = {}
                    for i in numbers(sample, 2):
                        need(i and attributes[i][0] not in labels, "attribute %d" % i)
                        labels[attributes[i][0]] = attributes[i][1]
                    values = [signed(v) for v in numbers(sample, 4)]
                    need(len(values) == 1, "one value for a sample without times")
                    samples.append({"stack": stacks[one(sample, 1)], "labels": labels, "value": values[0],
                                    "link": links[one(sample, 3)]})
                name = strings[one(kind, 1)]
                need(name not in profiles, "%s twice" % name)
                need(len(one(found, 7)) == 16 and any(one(found, 7)), "id of %s" % name)
                profiles[name] = {"unit": strings[one(kind, 2)], "samples": samples, "time_ns": one(found, 3),
                                  "duration_ns": one(found, 4), "period": one(found, 6),
                                  "notes": [attributes[i] for i in numbers(found, 11)]}
    return {"profiles": profiles, "resource": resource,
            "build_ids": [value for key, value in attributes if key == "process.executable.build_id.gnu"]}
