# SPDX-License-Identifier: BSD-3-Clause
"""Shows trees of libkvtree in gdb as kvtree_fprint does in the form KVTREE_FORM_LINES.

gdb loads this file automatically with the library if the file is installed where gdb looks;
otherwise use `source kvtree-gdb.py`. The file calls no function of the program, so it works on core
files as well. The memory that it reads may be garbage: it trusts no pointer, and stops after the
number of elements that `set print elements` allows (200 by default). `print /r *tree` shows the plain
structs.
"""
import re

import gdb
import gdb.printing

INDENT = 2
DEEPEST = 64
MOST = 100000  # elements, where `set print elements` has no limit

# Characters that a reader would not see or would mistake; as in kvtree_print.c.
HIDDEN = re.compile('[\x01-\x1f\x7f-\xa0\xad\u061c\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f'
                    '\u3000\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]')
MARK = re.compile(r'^ | $|^\((?=level)|(?:(?<=^)|(?<= ))=(?= |$)')


def bytes_shown(text):
    return ''.join(f'\\x{byte:02x}' for byte in text.encode('utf-8', errors='surrogateescape'))


def can_be_shown(character):
    try:
        character.encode(gdb.target_charset())
        character.encode(gdb.host_charset() if hasattr(gdb, 'host_charset') else 'ascii')
    except (UnicodeError, LookupError):
        return False
    return True


def escaped(key):
    """Returns the text of a key, which is given as bytes."""
    if not key:
        return '\\0'
    text = key.decode('utf-8', errors='surrogateescape')
    marks = {found.start() for found in MARK.finditer(text)}
    return ''.join('\\\\' if c == '\\' else
                   bytes_shown(c) if at in marks or HIDDEN.match(c) or not can_be_shown(c) else c
                   for at, c in enumerate(text))


def option(name, parameter):
    """Returns the value that the user set, or passed to the current command."""
    try:
        return gdb.print_options()[name]
    except (AttributeError, KeyError):
        return gdb.parameter(parameter) if parameter else None


def read_key(elem, most):
    """Returns the first bytes of a key, up to a limit, and whether there are more."""
    key = elem['key']
    is_array = key.type.strip_typedefs().code == gdb.TYPE_CODE_ARRAY
    address = int(key.address if is_array else key)
    memory, found = gdb.selected_inferior(), b''
    while len(found) <= most:  # byte by byte: memory after the key may be unreadable
        byte = bytes(memory.read_memory(address + len(found), 1))
        if byte == b'\0':
            return found, False
        found += byte
    return found[:most], True


class Lines:
    """The lines of a tree, as far as it can be read and the limit allows."""

    def __init__(self):
        self.most = option('max_elements', 'print elements') or MOST
        self.lines = []
        self.seen = set()
        self.more = []  # for each level of the path: whether there are later siblings

    def line(self, text):
        depth = len(self.more) - 1
        guides = ''.join('|' + ' ' * (INDENT - 1) if more else ' ' * INDENT
                         for more in self.more[:-1][:DEEPEST])
        level = f'(level {depth}) ' if depth > DEEPEST else ''
        self.lines.append(guides + level + text)

    def key(self, elem):
        key, cut = read_key(elem, self.most)
        return escaped(key) + ('...' if cut else '')

    def value(self, elem):
        """Returns the only child of elem, if that child has no children."""
        first = elem['value']['first']
        if not first or first['next']:
            return None
        return None if first['value']['first'] else first

    def add(self, elem):
        """Adds the line of elem. Returns its first child if that child needs lines of its own."""
        text = '+- ' + self.key(elem)
        below = None
        try:
            value = self.value(elem)
            if value is None:
                below = elem['value']['first']
            else:
                text += ' = ' + self.key(value)
        except gdb.error as error:
            text += f' <error: {error}>'
        self.line(text)
        return below

    def walk(self, first, siblings):
        """Adds all elements from first on. todo[i] is the next element at level i."""
        todo = [first]
        while todo:
            elem = todo.pop()
            if not elem:
                continue
            self.more[len(todo):] = [False]
            if int(elem) in self.seen:
                self.line('<error: the element at 0x%x for the second time>' % int(elem))
                continue
            if len(self.seen) == self.most:
                self.line('...')
                return
            self.seen.add(int(elem))
            try:
                following = elem['next'] if siblings or todo else None
                self.more[-1] = bool(following)
                below = self.add(elem)
            except gdb.error as error:
                self.line(f'<error: {error}>')
                continue
            todo.append(following)
            todo.append(below)

    def text(self, first, siblings=True):
        self.walk(first, siblings)
        return '\n'.join(self.lines)


class Printer:
    """A tree or an element, or a pointer to one."""

    def __init__(self, value, is_pointer, what):
        self.struct, self.is_pointer, self.what = value, is_pointer, what

    def to_string(self):
        head = ''
        struct = self.struct
        if self.is_pointer:
            head = '(%s *) 0x%x' % (self.what, int(struct))
            if not struct or option('summary', None):
                return head
            struct = struct.dereference()
        try:
            if self.what == 'kvtree_elem':
                text = Lines().text(struct.address, siblings=False)
            elif not struct['first']:
                return (head + ' (empty)').lstrip()
            else:
                text = Lines().text(struct['first'])
        except gdb.error as error:
            return f'{head} <error: {error}>'.lstrip()
        return head + '\n' + text


# The type names of programs, by the names of their structs.
TYPES = {'kvtree_struct': 'kvtree', 'kvtree_elem_struct': 'kvtree_elem'}


def full_type(name):
    """Returns the struct with its fields: programs see it without them."""
    try:
        found = gdb.lookup_type('struct ' + name)
        return found if found.fields() else None
    except gdb.error:
        return None


def lookup(value):
    kind = value.type.strip_typedefs()
    is_pointer = kind.code == gdb.TYPE_CODE_PTR
    target = kind.target().strip_typedefs() if is_pointer else kind
    struct = target.unqualified().tag
    if target.code != gdb.TYPE_CODE_STRUCT or struct not in TYPES:
        return None
    full, name = full_type(struct), TYPES[struct]
    if full is None:
        return None
    if is_pointer:
        return Printer(value.cast(full.pointer()), True, name)
    if value.address is not None:
        return Printer(value.address.cast(full.pointer()).dereference(), False, name)
    return Printer(value, False, name) if name == 'kvtree' else None


lookup.name, lookup.enabled = 'scr-kvtree', True  # required by gdb's `info pretty-printer`
gdb.printing.register_pretty_printer(gdb.current_objfile(), lookup, replace=True)
