# SPDX-License-Identifier: BSD-3-Clause
"""The command scr_extract, on directories with maps and containers that an independent writer made.

usage: scr_extract.py scr_extract scr_extract.1

The writer was made from docs/formats/rank2file.md and kvtree.md and shares no code with the library.
"""
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import socket
import stat
import subprocess
import zlib

from command import (COMMAND, expect, expect_documented, expect_ends_unread, expect_output_fails, expect_well_formed_page,
                     expect_wrong_usage, run_closed, run_unread)
from command import image, run, run_tests

# ---- the writer ----


def crc_text(data):
    return f'0x{zlib.crc32(data):08x}'


def value(text):
    return {str(text): {}}


def map_files(entries, name='.scr/rank2file.scr'):
    """Makes a map with one file at level 0: name -> bytes. entries: the tree of each
    rank."""
    stem = name.removesuffix('.scr')
    low = {'LEVEL': value(0), 'RANKS': value(len(entries)),
           'RANK': {str(rank): entry for rank, entry in enumerate(entries)}}
    root = {'LEVEL': value(1), 'RANKS': value(len(entries)),
            'RANK': {'0': {'OFFSET': value(0), 'FILE': value(f'{stem}.0.0.scr')}}}
    return {f'{stem}.0.0.scr': image({'RANK2FILE': low}), name: image(root)}


class Dataset:
    """Files of ranks; those in `packed` are cut into containers of one size, which begin
    with other bytes."""

    def __init__(self, packed, plain=None, size=1000, mode='0640', skip=7):
        self.packed, self.plain, self.size, self.mode = packed, plain or {}, size, mode
        self.stream, self.entries = random.Random(1).randbytes(skip), {}
        ranks = 1 + max([rank for rank, _ in (*packed, *self.plain)], default=0)
        for rank in range(ranks):
            self.entries[rank] = {}
        for (rank, name), data in packed.items():
            self.entries[rank][name] = self.describe(data, self.place(data))
        for (rank, name), data in self.plain.items():
            self.entries[rank][name] = self.describe(data)

    def place(self, data):
        segments, left = {}, data
        while left:
            at = len(self.stream) % self.size
            part, left = left[:self.size - at], left[self.size - at:]
            segments[str(len(segments))] = {'FILE': value(self.container(len(self.stream) // self.size)),
                                            'OFFSET': value(at), 'LENGTH': value(len(part))}
            self.stream += part
        return segments

    def container(self, i):
        return f'.scr/ctr.{i}.scr'

    def describe(self, data, segments=None):
        known = {'SIZE': value(len(data)), 'CRC': value(crc_text(data))}
        if segments is not None:
            known.update({'MODE': value(self.mode), 'SEG': segments} if self.mode else {'SEG': segments})
        return known

    def files(self):
        """All files in the directory: name -> bytes."""
        entries = [{'FILE': files} for files in self.entries.values()]
        cut = range(0, len(self.stream), self.size)
        return {**{self.container(i // self.size): self.stream[i:i + self.size] for i in cut},
                **{name: data for (_, name), data in self.plain.items()}, **map_files(entries)}

    def wanted(self):
        return {name: data for (_, name), data in self.packed.items()}


def bytes_of(seed, size):
    return random.Random(seed).randbytes(size)


def sample(**how):
    """A file in three containers, an empty one, some small ones, one in a directory, and
    one that is not packed."""
    return Dataset({(0, 'three'): bytes_of(0, 2500), (0, 'empty'): b'', (1, 'one'): b'1', (1, 'a/b/deep'): bytes_of(2, 300),
                    (3, 'last'): bytes_of(3, 700)}, {(3, 'plain'): bytes_of(4, 99)}, **how)


# ---- directories ----

def put(folder, files):
    for name, data in files.items():
        path = pathlib.Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def everything(folder):
    return {str(path.relative_to(folder)): path.read_bytes()
            for path in pathlib.Path(folder).rglob('*') if path.is_file() and not path.is_symlink()}


def fill(dataset, folder='f'):
    shutil.rmtree(folder, ignore_errors=True)
    whole = dataset.files()
    put(folder, whole)
    return whole


def flipped(data, at):
    return data[:at] + bytes([data[at] ^ 0x20]) + data[at + 1:]


def mode_of(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


def said(names, word, tail):
    return ''.join(f'{name}: {word}\n' for name in names) + tail + '\n'


ORDER = ['three', 'empty', 'one', 'a/b/deep', 'last']
ALL_OUT = said(ORDER, 'extracted', '5 extracted, 0 there already, 0 damaged, 0 failed')


# ---- good ----

def test_all_into_the_folder():
    data = sample()
    whole = fill(data)
    old = os.umask(0o077)
    expect(run('f'), 0, ALL_OUT)
    os.umask(old)
    assert everything('f') == {**whole, **data.wanted()}
    assert all(mode_of(f'f/{name}') == 0o640 for name in data.wanted())
    # once more: nothing is touched
    before = {name: os.lstat(f'f/{name}').st_ino for name in data.wanted()}
    expect(run('f'), 0, said(ORDER, 'there already', '0 extracted, 5 there already, 0 damaged, 0 failed'))
    assert before == {name: os.lstat(f'f/{name}').st_ino for name in data.wanted()}


def test_to_another_folder():
    data = sample()
    whole = fill(data)
    expect(run('--to', 'new/folder', 'f'), 0, ALL_OUT)
    assert everything('f') == whole and everything('new/folder') == data.wanted()
    os.chmod('f/plain', 0o444)
    expect(run('--to', 'named', 'f', 'plain', 'one'), 0,
           said(['one', 'plain'], 'extracted', '2 extracted, 0 there already, 0 damaged, 0 failed'))
    assert everything('named') == {'plain': whole['plain'], 'one': b'1'} and mode_of('named/plain') == 0o444


def test_by_name_and_rank():
    data = sample()
    fill(data)
    expect(run('f', 'three'), 0, said(['three'], 'extracted', '1 extracted, 0 there already, 0 damaged, 0 failed'))
    expect(run('--rank', '1', 'f'), 0,
           said(['one', 'a/b/deep'], 'extracted', '2 extracted, 0 there already, 0 damaged, 0 failed'))
    expect(run('--rank', '2', 'f'), 0, '0 extracted, 0 there already, 0 damaged, 0 failed\n')
    expect(run('f', 'plain'), 0, said(['plain'], 'there already', '0 extracted, 1 there already, 0 damaged, 0 failed'))
    expect(run('f', 'last', 'no', 'three/'), 1,
           said(['last'], 'extracted', '1 extracted, 0 there already, 0 damaged, 2 failed'),
           ['EXTRACT_NOT_IN_MAP', 'scr_extract: no: ', 'scr_extract: three/: '])
    expect(run('-r', '0', 'f', 'last'), 1, '0 extracted, 0 there already, 0 damaged, 1 failed\n',
           ['EXTRACT_NOT_IN_MAP', 'scr_extract: last: ', ' rank 0 '])
    expect(run('-r', '4', 'f'), 1, '', ['EXTRACT_NOT_IN_MAP', 'scr_extract: f: ', ' rank 4 ', ' 4 ranks '])


def test_modes():
    for mode, got in (('0755', 0o755), ('444', 0o444), ('0000', 0o600), (None, 0o600)):
        fill(sample(mode=mode))
        assert run('f').returncode == 0 and mode_of('f/three') == got, mode


def test_nothing_is_packed():
    """This is not a failure, and is reported."""
    fill(Dataset({}, {(0, 'plain'): b'x'}))
    expect(run('f'), 0, 'no file is packed: all have their names already; --verify reads them\n'
           '0 extracted, 0 there already, 0 damaged, 0 failed\n')
    expect(run('--verify', 'f'), 0, said(['plain'], 'good', '1 good, 0 damaged, 0 failed'))


def test_another_map():
    data = sample()
    files = data.files()
    stem = '.scr/rank2file'
    files = {name: content for name, content in files.items() if not name.startswith(stem)}
    put('f', {**files, **map_files([{'FILE': entry} for entry in data.entries.values()], 'maps/ckpt.7')})
    expect(run('f'), 1, '', ['scr_extract: f: map in f: ', '.scr/rank2file.scr', 'is missing'])
    expect(run('--map', 'maps/ckpt.7', 'f'), 0, ALL_OUT)
    expect(run('--map', '../f/maps/ckpt.7', 'f'), 1, '', ['name of the map: file name "../f/maps/ckpt.7"'])


def test_no_checksum_in_the_map():
    data = sample()
    for files in data.entries.values():
        for known in files.values():
            del known['CRC']
    fill(data)
    expect(run('f'), 0, ALL_OUT)
    # only an empty file is known to be the same
    done = run('f')
    assert done.returncode == 1 and b'0 extracted, 1 there already, 0 damaged, 4 failed' in done.stdout, done
    assert b'one: failed: one is there already, and not known to be the same' in done.stderr, done
    assert run('--force', 'f').returncode == 0


def with_shared():
    """The sample, and a file that two ranks wrote together, with a hole."""
    data = sample()
    parts = {(0, 'all.part.0'): (0, bytes_of(7, 50)), (1, 'all.part.60'): (60, bytes_of(8, 40))}
    for (rank, name), (at, part) in parts.items():
        data.entries[rank][name] = data.describe(part, {'0': {'FILE': value('all'), 'OFFSET': value(at), 'LENGTH': value(len(part))}})
    data.entries[0]['all'] = {'SIZE': value(100), 'SHARED': value(1)}
    shared = bytes_of(7, 50) + bytes(10) + bytes_of(8, 40)
    files = {**data.files(), 'all': shared}
    shutil.rmtree('f', ignore_errors=True)
    put('f', files)
    return data, files


def test_shared_file():
    """Its parts do not become files beside it; by name they are extracted elsewhere."""
    data, files = with_shared()
    expect(run('f'), 0, ALL_OUT)
    assert everything('f') == {**files, **data.wanted()}
    expect(run('f', 'all'), 0, said(['all'], 'there already', '0 extracted, 1 there already, 0 damaged, 0 failed'))
    expect(run('f', 'all.part.60'), 1, '0 extracted, 0 there already, 0 damaged, 1 failed\n',
           ['scr_extract: all.part.60: failed: it is a part of all, which is there; extract it with --to'])
    assert 'all.part.60' not in everything('f')
    expect(run('--to', 'new', 'f'), 0, ALL_OUT)
    assert everything('new') == data.wanted()
    expect(run('--to', 'named', 'f', 'all', 'all.part.60'), 0,
           said(['all', 'all.part.60'], 'extracted', '2 extracted, 0 there already, 0 damaged, 0 failed'))
    assert everything('named') == {'all': files['all'], 'all.part.60': bytes_of(8, 40)}
    assert [one['name'] for one in objects(run('--list', '--json', 'f').stdout) if one['shared']] == ['all']


def test_verify_shared_file():
    """It is verified by its parts and its size."""
    for change, bad, reason in ((lambda all: all[:99], ['all', 'all.part.60'], 'all has 99 bytes, not 100'),
                                (lambda all: all + b'x', ['all'], 'all has 101 bytes, not 100'),
                                (lambda all: flipped(all, 70), ['all.part.60'], 'altered: CRC32')):
        _, files = with_shared()
        expect(run('-n', 'f', 'all', 'all.part.0'), 0, said(['all.part.0', 'all'], 'good', '2 good, 0 damaged, 0 failed'))
        put('f', {'all': change(files['all'])})
        done = run('-n', 'f')
        damaged = [line.split()[1].rstrip(':') for line in done.stderr.decode().splitlines() if ': damaged: ' in line]
        assert done.returncode == 1 and damaged == bad and reason in done.stderr.decode(), done


def test_hostile_shared_file():
    """A map that declares a container as shared does not get it replaced."""
    data, _ = with_shared()
    container = '.scr/ctr.0.scr'
    data.entries[1][container] = {**data.describe(b'', {}), 'SHARED': value(1)}
    whole = data.files()
    put('f', whole)
    expect(run('--force', 'f', container), 1, '0 extracted, 0 there already, 0 damaged, 1 failed\n',
           [f'{container}: failed: the name'])
    assert everything('f')[container] == whole[container]


def test_list():
    fill(sample())
    head = '   rank           size crc32       name\n'
    three = (f"      0           2500 {crc_text(bytes_of(0, 2500))}  three  in .scr/ctr.0.scr at 7 (993), "
             ".scr/ctr.1.scr at 0 (1000), .scr/ctr.2.scr at 0 (507)\n")
    plain = f'      3             99 {crc_text(bytes_of(4, 99))}  plain\n'
    expect(run('--list', 'f', 'plain', 'three'), 0, head + three + plain)
    expect(run('--list', '--rank', '0', 'f'), 0, head + three + '      0              0 0x00000000  empty  packed\n')
    assert run('-l', 'f').stdout.count(b'\n') == 7


def objects(text):
    """The JSON objects, one on each line."""
    return [json.loads(line) for line in text.decode().splitlines()]


def test_json():
    whole = fill(sample())
    listed = objects(run('--list', '--json', 'f').stdout)
    assert [one['name'] for one in listed] == ORDER + ['plain']
    assert listed[0] == {
        'rank': 0, 'name': 'three', 'size': 2500, 'crc32': crc_text(bytes_of(0, 2500)), 'mode': '0640', 'shared': False, 'packed': True,
        'segments': ['.scr/ctr.0.scr 7 993', '.scr/ctr.1.scr 0 1000', '.scr/ctr.2.scr 0 507'], 'result': None, 'reason': None}, listed[0]
    assert (listed[5]['mode'], listed[5]['packed'], listed[5]['segments']) == (None, False, []), listed[5]
    put('f', {'.scr/ctr.2.scr': flipped(whole['.scr/ctr.2.scr'], 0), 'one': b'1'})
    done = run('--json', 'f')
    results = {one['name']: one['result'] for one in objects(done.stdout)}
    assert done.returncode == 1 and results == {
        'three': 'damaged', 'empty': 'extracted', 'one': 'there already', 'a/b/deep': 'extracted', 'last': 'extracted'}
    assert objects(done.stdout)[0]['reason'].startswith('altered: CRC32 0x'), done


def test_verify():
    whole = fill(sample())
    expect(run('--verify', 'f'), 0, said(ORDER + ['plain'], 'good', '6 good, 0 damaged, 0 failed'))
    put('f', {'plain': whole['plain'] + b'more'})
    expect(run('-n', 'f', 'plain'), 1, '0 good, 1 damaged, 0 failed\n',
           ['scr_extract: plain: damaged: plain has 103 bytes, not 99'])
    put('f', {'plain': flipped(whole['plain'], 50)})
    expect(run('f', 'plain'), 1, '0 extracted, 0 there already, 1 damaged, 0 failed\n', ['plain: damaged: altered: CRC32'])
    os.unlink('f/plain')
    expect(run('-n', 'f', 'plain'), 1, '0 good, 1 damaged, 0 failed\n', ['plain: damaged: plain is missing'])
    put('f', {'.scr/ctr.1.scr': whole['.scr/ctr.1.scr'][:-1]})
    done = run('-n', 'f')
    assert done.returncode == 1 and b'4 good, 2 damaged, 0 failed' in done.stdout, done
    assert set(everything('f')) == set(whole) - {'plain'}


# ---- damage ----

def test_damaged_containers():
    """Each kind of damage to the second of the three containers affects the file in it,
    and no other."""
    data = sample()
    name = '.scr/ctr.1.scr'

    def missing(path):
        path.unlink()

    def short(path):
        path.write_bytes(path.read_bytes()[:-1])

    def nothing(path):
        path.write_bytes(b'')

    def altered(path):
        path.write_bytes(flipped(path.read_bytes(), 500))

    def link(path):
        path.rename('elsewhere')
        path.symlink_to(pathlib.Path('elsewhere').absolute())

    def folder(path):
        path.unlink()
        path.mkdir()

    def pipe(path):
        path.unlink()
        os.mkfifo(path)

    def sock(path):
        path.unlink()
        socket.socket(socket.AF_UNIX).bind(str(path))

    told = {missing: '.scr/ctr.1.scr is missing', short: '.scr/ctr.1.scr has 999 bytes, but 1000 of the file are at 0',
            nothing: '.scr/ctr.1.scr has 0 bytes', altered: 'altered: CRC32 0x', link: 'open .scr/ctr.1.scr: a symbolic link',
            folder: '.scr/ctr.1.scr is not a regular file', pipe: '.scr/ctr.1.scr is not a regular file',
            sock: 'open .scr/ctr.1.scr: No such device'}
    for damage, reason in told.items():
        whole = fill(data)
        damage(pathlib.Path('f', name))
        rest = ORDER[1:]
        expect(run('f'), 1, said(rest, 'extracted', '4 extracted, 0 there already, 1 damaged, 0 failed'),
               [f'scr_extract: three: damaged: {reason}'])
        found = everything('f')
        assert not os.path.lexists('f/three') and not [path for path in found if path.endswith('.tmp')], damage
        assert {path: found[path] for path in rest} == {path: data.wanted()[path] for path in rest}
        # what was there before is not lost
        put('f', {'three': b'earlier'})
        assert run('--force', 'f').returncode == 1 and pathlib.Path('f/three').read_bytes() == b'earlier'
        put('f', {'three': data.wanted()['three']})
        assert run('f').returncode == 0 and whole


def test_containers_that_are_longer():
    data = sample()
    whole = fill(data)
    put('f', {'.scr/ctr.1.scr': whole['.scr/ctr.1.scr'] + b'more'})
    expect(run('f'), 0, ALL_OUT)


def test_damaged_maps():
    data = sample()
    for name in ('.scr/rank2file.scr', '.scr/rank2file.0.0.scr'):
        for damage in (lambda path: path.unlink(), lambda path: path.write_bytes(flipped(path.read_bytes(), 45)),
                       lambda path: path.write_bytes(path.read_bytes()[:-1])):
            fill(data)
            damage(pathlib.Path('f', name))
            before = everything('f')
            expect(run('f'), 1, '', ['scr_extract: f: map in f: ', name])
            assert everything('f') == before


# ---- hostile ----

def one_file(name, segments, data=b'some bytes', **known):
    return [{'FILE': {name: {'SIZE': value(len(data)), 'CRC': value(crc_text(data)), 'SEG': segments, **known}}}]


def segment(container='ctr', offset=0, length=10):
    return {'FILE': value(container), 'OFFSET': value(offset), 'LENGTH': value(length)}


def test_names_that_lead_out():
    """Such names of files and containers: the map is refused as a whole."""
    good = {'FILE': {'good': {'SIZE': value(10), 'SEG': {'0': segment()}}}}
    for name in ('../x', '/tmp/x', 'a/../../x', '.', '..', '', 'a//b', 'a/', 'a\nb', 'x' * 1024):
        for entries in (one_file(name, {'0': segment()}), one_file('x', {'0': segment(name)})):
            shutil.rmtree('f', ignore_errors=True)
            put('f', {'ctr': b'some bytes', **map_files([good, *entries])})
            put('.', {'x': b'some bytes'})
            before = everything('.')
            done = run('f')
            assert done.returncode == 1 and not done.stdout and b'rank 1: ' in done.stderr, (name, done)
            assert everything('.') == before, name


def test_segments_that_cannot_be():
    for segments in ({'0': segment(length=9)}, {'0': segment(length=11)}, {'1': segment()}, {'0': segment(offset=-1)},
                     {'0': segment(offset=2**63)}, {'0': segment(offset=2**63 - 5)}, {}):
        shutil.rmtree('f', ignore_errors=True)
        put('f', {'ctr': b'some bytes', **map_files(one_file('x', segments))})
        done = run('f')
        assert done.returncode == 1 and b'rank 0: ' in done.stderr and not os.path.exists('f/x'), (segments, done)
    put('f', {'ctr': b'some bytes', **map_files(one_file('x', {'0': segment(offset=2**63 - 11)}))})
    expect(run('f'), 1, '0 extracted, 0 there already, 1 damaged, 0 failed\n', ['x: damaged: ctr has 10 bytes'])


def test_links_are_not_followed():
    data = sample()
    fill(data)
    os.mkdir('outside')
    os.symlink(pathlib.Path('outside').absolute(), 'f/a')
    put('outside', {'three': b'mine'})
    os.symlink(pathlib.Path('outside/three').absolute(), 'f/three')
    done = run('f')
    assert done.returncode == 1 and b'3 extracted, 0 there already, 0 damaged, 2 failed' in done.stdout, done
    assert b'three: failed: three is there already' in done.stderr and b'a/b/deep: failed: ' in done.stderr, done
    # a link is replaced itself; one on the way never is
    done = run('--force', 'f')
    assert done.returncode == 1 and b'1 extracted, 3 there already, 0 damaged, 1 failed' in done.stdout, done
    assert everything('outside') == {'three': b'mine'} and not os.path.islink('f/three')
    # the directories themselves may be reached by links: the caller decides about them
    os.symlink('f', 'link')
    os.unlink('f/a')
    assert run('link').returncode == 0 and everything('f')['a/b/deep'] == data.wanted()['a/b/deep']


def test_names_of_others():
    """A file cannot replace the map or a container, not even with --force."""
    for name, reason in (('ctr', 'the name is that of a container'), ('.scr/rank2file.scr', 'the name belongs to the map'),
                         ('.scr/rank2file.9.9.scr', 'the name belongs to the map')):
        shutil.rmtree('f', ignore_errors=True)
        put('f', {'ctr': b'some bytes', **map_files(one_file(name, {'0': segment()}))})
        before = everything('f')
        expect(run('--force', 'f'), 1, '0 extracted, 0 there already, 0 damaged, 1 failed\n', [reason])
        expect(run('--to', 'new', 'f'), 1, '0 extracted, 0 there already, 0 damaged, 1 failed\n', [reason])
        assert everything('f') == before and not everything('new')


def test_what_people_see():
    """Names that would move the cursor or change the writing direction."""
    name = 'a\u202eb\u0085c'
    put('f', {'ctr': b'some bytes', **map_files(one_file(name, {'0': segment()}))})
    shown = 'a\\xe2\\x80\\xaeb\\xc2\\x85c'
    expect(run('f'), 0, said([shown], 'extracted', '1 extracted, 0 there already, 0 damaged, 0 failed'))
    put('f', {name: b'other'})
    done = run('f')
    assert f'{shown}: failed: {shown} is there'.encode() in done.stderr and '\u202e'.encode() not in done.stderr, done
    assert shown.encode() in run('--list', 'f').stdout
    assert objects(run('--list', '--json', 'f').stdout)[0]['name'] == name


# ---- what is there already ----

def test_other_files_of_the_name():
    data = sample()
    whole = fill(data)
    put('f', {'three': flipped(data.wanted()['three'], 2499), 'one': b'22', 'empty': b'not'})
    os.mkdir('f/last')
    before = everything('f')
    done = run('f')
    assert done.returncode == 1 and b'1 extracted, 0 there already, 0 damaged, 4 failed' in done.stdout, done
    for name in ('three', 'one', 'empty', 'last'):
        assert f'{name}: failed: {name} is there already, and not known to be the same'.encode() in done.stderr, done
    assert everything('f') == {**before, 'a/b/deep': data.wanted()['a/b/deep']}
    done = run('--force', 'f')
    assert done.returncode == 1 and b'3 extracted, 1 there already, 0 damaged, 1 failed' in done.stdout, done
    assert b'last: failed: rename to last: Is a directory' in done.stderr, done
    os.rmdir('f/last')
    assert run('f').returncode == 0 and everything('f') == {**whole, **data.wanted()}


# ---- limits of the system ----

def test_full_disk():
    """On a small file system of its own; and, for all users, with a limit of the file
    size."""
    data = Dataset({(0, 'small'): b's', (0, 'large'): bytes_of(5, 300000), (1, 'next'): b'n'}, size=100000)
    fill(data)
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (200000, 200000))
    expect(run('--to', 'new', 'f', preexec_fn=limit), 1,
           said(['small', 'next'], 'extracted', '2 extracted, 0 there already, 0 damaged, 1 failed'),
           ['scr_extract: large: failed: write large: File too large'])
    assert everything('new') == {'small': b's', 'next': b'n'}
    os.mkdir('full')
    if os.geteuid() or subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=128k', 'none', 'full'],
                                      capture_output=True).returncode:
        print('no file system can be mounted here')
        return
    try:
        expect(run('--to', 'full', 'f'), 1,
               said(['small', 'next'], 'extracted', '2 extracted, 0 there already, 0 damaged, 1 failed'),
               ['scr_extract: large: failed: write large: No space left on device'])
        assert everything('full') == {'small': b's', 'next': b'n'}
    finally:
        subprocess.run(['umount', 'full'], check=True)


def is_shorter(path, size):
    """A missing file does not count."""
    try:
        return path.stat().st_size < size
    except FileNotFoundError:
        return False


def test_killed():
    """The command is killed while it writes a large file: no partial file has that name,
    and the next run extracts it. For each system call: test_filo_extract.c."""
    data = Dataset({(0, 'large'): bytes(range(256)) * 120000}, size=20000000)
    whole = fill(data)
    for i in range(3):
        process = subprocess.Popen([COMMAND, 'f'], stdout=subprocess.DEVNULL)
        while process.poll() is None and not (temporary := list(pathlib.Path('f').glob('.*.tmp'))):
            pass
        while process.poll() is None and is_shorter(temporary[0], i * 10000000):
            pass
        process.send_signal(signal.SIGKILL)
        killed = process.wait() != 0  # on a busy machine it may have been faster
        assert not os.path.exists('f/large') or pathlib.Path('f/large').read_bytes() == data.wanted()['large'], killed
        for path in [*pathlib.Path('f').glob('.*.tmp'), pathlib.Path('f/large')]:
            path.unlink(missing_ok=True)
    assert run('f').returncode == 0 and everything('f') == {**whole, **data.wanted()}


def test_many_files_with_few_descriptors():
    data = Dataset({(i % 7, f'd{i % 10}/{i}'): b'%d' % i for i in range(500)}, size=100)
    whole = fill(data)
    few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16))
    done = run('f', preexec_fn=few)
    assert done.returncode == 0 and everything('f') == {**whole, **data.wanted()}, done.stderr
    expect(run('f', '499'), 1, '0 extracted, 0 there already, 0 damaged, 1 failed\n', ['EXTRACT_NOT_IN_MAP', '499: '])


def test_folders():
    put('.', {'file': b''})
    expect(run('no'), 1, '', ['EXTRACT_FAILED' if os.geteuid() else 'DIRECTORY_UNUSABLE', 'no: ', 'No such file'])
    expect(run('file'), 1, '', ['file: ', 'Not a directory'])
    fill(sample())
    expect(run('--to', 'file', 'f'), 1, '', ['EXTRACT_FAILED', ' file: Not a directory'])


def test_output_fails():
    fill(sample())
    expect_output_fails(['f'], ['--list', 'f'], ['--verify', 'f'], ['--list', '--json', 'f'])
    expect_ends_unread(['--list', 'f'], ['--verify', 'f'])
    for call, code, form in ((run_unread, 0, []), (run_unread, 0, ['--json']), (run_closed, 1, [])):
        assert run('--to', 'read', 'f').returncode == 0 and call('--to', 'unread', *form, 'f').returncode == code
        assert everything('read') == everything('unread')
        shutil.rmtree('read')
        shutil.rmtree('unread')


def test_usage():
    fill(sample())
    expect_wrong_usage([], [''], ['--list', '--verify', 'f'], ['--list', '--to', 'x', 'f'], ['--verify', '--force', 'f'],
                       ['--rank', '-1', 'f'], ['--rank=x', 'f'], ['--rank=2147483648', 'f'], ['-x', 'f'], ['f', '--map'])
    expect_documented(9, {'--to': 'x', '--rank': '1', '--map': 'x'})
    expect_well_formed_page()


run_tests(globals())
