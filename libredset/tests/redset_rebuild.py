# SPDX-License-Identifier: BSD-3-Clause
"""The command redset_rebuild, on directories that an independent encoder filled.

usage: redset_rebuild.py redset_rebuild redset_rebuild.1

The encoder was written from docs/formats/redset.md and shares no code with the library. So the command, the
library and that document must agree byte for byte.
"""
import itertools
import os
import pathlib
import random
import resource
import shutil
import zlib

from command import (expect, expect_documented, expect_ends_unread, expect_output_fails, expect_well_formed_page,
                     expect_wrong_usage, run_closed, run_unread)
from command import COMMAND, image, packed, run, run_tests

# ---- GF(2^8), polynomial 0x11d ----


def multiply(a, b):
    product = 0
    while b:
        product ^= a if b & 1 else 0
        a = a << 1 ^ (0x11d if a & 0x80 else 0)
        b >>= 1
    return product


TIMES = [bytes(multiply(a, b) for b in range(256)) for a in range(256)]
INVERSE = [0] + [TIMES[a].index(1) for a in range(1, 256)]


def add_product(into, factor, data):
    product = data.translate(TIMES[factor])
    return (int.from_bytes(into, 'little') ^ int.from_bytes(product, 'little')).to_bytes(len(into), 'little')


# ---- the encoder ----

def file_list(rank, files):
    entries = {str(i): {'NOTE': {f'of {rank}': {}}, 'FILE': {name: {}}, 'SIZE': {str(len(data)): {}},
                        'CRC': {f'0x{zlib.crc32(data):08x}': {}}}
               for i, (name, data) in enumerate(files.items())}
    return {'RANK': {str(rank): {}}, 'FILES': {str(len(files)): {}}, **({'FILE': entries} if files else {})}


class Set:
    """One set: the ranks index, index + sets, ... of an encode by `ranks` processes."""

    def __init__(self, scheme, failures, files, index=0, sets=1, about='ckpt.7'):
        self.scheme, self.failures, self.files, self.about = scheme, failures, files, about
        self.index, self.sets, self.ranks = index, sets, len(files)
        self.members = list(range(index, self.ranks, sets))
        self.n = len(self.members)
        self.logical = [b''.join(files[rank].values()) for rank in self.members]
        coded = scheme in ('XOR', 'RS')
        self.chunks = self.n - failures
        self.chunk = -(-max(map(len, self.logical)) // self.chunks) if coded else 0
        self.data = self.encode() if coded else [
            b''.join(self.logical[(m - 1 - j) % self.n] for j in range(failures)) for m in range(self.n)]

    def encode(self):
        parts = [[b''] * self.failures for _ in range(self.n)]
        used = [0] * self.n
        for position in range(self.n):
            sums = [bytes(self.chunk)] * self.failures
            for m, logical in enumerate(self.logical):
                x = (m - position) % self.n
                if x < self.failures:
                    continue
                data = logical[used[m] * self.chunk:(used[m] + 1) * self.chunk].ljust(self.chunk, b'\0')
                used[m] += 1
                for j in range(self.failures):
                    sums[j] = add_product(sums[j], TIMES[x][INVERSE[x ^ j]], data)
            for j in range(self.failures):
                parts[(position + j) % self.n][j] = sums[j]
        return [b''.join(part) for part in parts]

    def name(self, m):
        return f'{m + 1}_of_{self.n}_in_{self.members[0]}.{self.scheme.lower()}'

    def header(self, m):
        kept = [file_list(self.members[(m - d) % self.n], self.files[self.members[(m - d) % self.n]])
                for d in range(self.failures + 1)]
        tree = {'DSET': {'NAME': {self.about: {}}}, 'TYPE': {self.scheme: {}}}
        if self.scheme in ('PARTNER', 'RS'):
            tree['FAILURES'] = {str(self.failures): {}}
        tree['RANKS'] = {str(self.ranks): {}}
        tree['GROUP'] = {'RANKS': {str(self.n): {}}, 'ID': {str(self.members[0]): {}},
                         'GROUPS': {str(self.sets): {}}, 'INDEX': {str(self.index): {}},
                         'RANK': {str(i): {str(rank): {}} for i, rank in enumerate(self.members)}}
        tree['CHUNK'] = {str(self.chunk): {}}
        tree['CURRENT'] = kept[0]
        if self.failures:
            tree['PARTNER'] = kept[1]
        if self.failures > 1:
            tree['PARTNERS'] = {str(d): kept[d] for d in range(2, self.failures + 1)}
        number = sum(zlib.crc32(packed(file_list(rank, files))) for rank, files in self.files.items())
        tree['ENCODE'] = {f'{number:016x}': {}}
        tree['CRC'] = {f'0x{zlib.crc32(self.data[m]):08x}': {}}
        return tree

    def of_member(self, m, redundancy=''):
        """All files of a member: name -> bytes."""
        return {**self.files[self.members[m]], redundancy + self.name(m): image(self.header(m)) + self.data[m]}

    def can_rebuild(self, lost):
        if self.scheme == 'PARTNER':
            return all(any((m + d) % self.n not in lost for d in range(1, self.failures + 1)) for m in lost)
        return len(lost) <= self.failures

    def title(self):
        return f"set {self.members[0]}: {self.scheme} over {self.n} rank{'' if self.n == 1 else 's'}"


def bytes_of(seed, size):
    return random.Random(seed).randbytes(size)


def some_files(rank, draw=None, largest=300):
    """Files of very different kinds."""
    kind = draw.randrange(6) if draw else rank % 6
    if kind == 0:
        return {f'r{rank}.ckpt': bytes_of(rank, largest + rank)}
    if kind == 1:
        return {}
    if kind == 2:
        return {f'a/b{rank}/c': bytes_of(rank, largest // 3), f'empty{rank}': b'', f'a/x{rank}': bytes_of(rank, 45)}
    if kind == 3:
        return {f'many{rank}/f{i}': bytes_of(100 * rank + i, 7 * i) for i in range(9)}
    return {f'e{rank}': b''} if kind == 4 else {f'one{rank}': b'1'}


def several_sets(scheme, failures, ranks, sets, **how):
    files = {rank: some_files(rank) for rank in range(ranks)}
    return [Set(scheme, failures, files, i, sets, **how) for i in range(sets)]


# ---- directories ----

def put(folder, files):
    for name, data in files.items():
        path = pathlib.Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def take(folder, names):
    for name in names:
        pathlib.Path(folder, name).unlink()


def everything(folder):
    return {str(path.relative_to(folder)): path.read_bytes()
            for path in pathlib.Path(folder).rglob('*') if not path.is_dir()}


def fill(folder, sets, redundancy=''):
    """Writes all files of all sets, and returns them."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(pathlib.Path(folder, redundancy))
    whole = {}
    for s in sets:
        for m in range(s.n):
            whole.update(s.of_member(m, redundancy))
    put(folder, whole)
    return whole


def flipped(data, at):
    return data[:at] + bytes([data[at] ^ 0x20]) + data[at + 1:]


def damage(folder, s, m, draw):
    """Damages or removes files of a member, in one of several ways."""
    own = {name: data for name, data in s.of_member(m).items()}
    kind = draw.randrange(5)
    name = draw.choice(list(own)) if kind else None
    data = own.get(name)
    if kind == 0:
        return take(folder, own)
    if kind == 1:
        return take(folder, [name])
    if kind == 2 and data:
        return put(folder, {name: flipped(data, draw.randrange(len(data)))})
    if kind == 3 and data:
        return put(folder, {name: data[:draw.randrange(len(data))]})
    return put(folder, {name: data + b'more'})


def check_losses(folder, whole, s, lost, rebuilt_only=False):
    """Checks the output and the effect of the command for a set with lost members."""
    damaged = everything(folder)
    can = s.can_rebuild(lost)
    if not rebuilt_only:
        done = run('--verify', folder)
        assert done.returncode == ((3 if lost else 0) if can else 1), (s.title(), lost, done)
        assert everything(folder) == damaged
    done = run(folder)
    lines = done.stdout.decode().splitlines()
    state = ('rebuilt' if lost else 'all there') if can else 'cannot be rebuilt'
    assert lines[0] == f'{s.title()}: {state}', (lost, done)
    ranks = [int(line.split()[1]) for line in lines[1:]]
    assert ranks == [s.members[m] for m in sorted(lost)], (lost, done)
    assert done.returncode == (0 if can else 1), (lost, done)
    assert bool(done.stderr) != can, done
    assert everything(folder) == (whole if can else damaged), (s.title(), lost)


def shapes(members):
    for n in members:
        yield from ((scheme, n, f) for f in range(1, n) for scheme in ('PARTNER', 'RS'))
        yield 'XOR', n, 1


def test_every_loss_of_small_sets():
    for scheme, n, failures in shapes(range(2, 6)):
        s = Set(scheme, failures, {rank: some_files(rank) for rank in range(n)})
        whole = fill('f', [s])
        for count in range(n):
            for lost in itertools.combinations(range(n), count):
                for m in lost:
                    take('f', s.of_member(m))
                check_losses('f', whole, s, lost, rebuilt_only=True)
                put('f', whole)


def test_random_losses():
    draw = random.Random(4)
    for i in range(60):
        n = draw.randrange(2, 33)
        scheme = draw.choice(['PARTNER', 'RS', 'XOR', 'RS'])
        failures = 1 if scheme == 'XOR' else draw.randrange(1, min(n, 9))
        s = Set(scheme, failures, {rank: some_files(rank, draw, draw.randrange(1, 3000)) for rank in range(n)})
        whole = fill('f', [s])
        lost = sorted(draw.sample(range(n), draw.randrange(min(n, failures + 2))))
        for m in lost:
            damage('f', s, m, draw)
        check_losses('f', whole, s, lost)


def test_no_redundancy():
    sets = several_sets('SINGLE', 0, 3, 3)
    whole = fill('f', sets)
    expect(run('f'), 0, ''.join(f'{s.title()}: all there\n' for s in sets))
    put('f', {'r0.ckpt': b'other'})
    done = run('-n', 'f')
    assert done.returncode == 1 and b'set 0: SINGLE over 1 rank: cannot be rebuilt\n  rank 0 was lost' in done.stdout
    assert b'r0.ckpt is not a file of 300 bytes' in done.stderr, done
    put('f', whole)


def test_several_sets():
    sets = several_sets('RS', 2, 12, 3)
    whole = fill('f', sets)
    lost = {0: [1], 1: [], 2: [0, 3]}
    for i, members in lost.items():
        for m in members:
            take('f', sets[i].of_member(m))
    told = ('set 0: RS over 4 ranks: rebuilt\n'
            '  rank 3 was lost: 2_of_4_in_0.rs is missing '
            '(9 files, 252 bytes)\n'
            'set 1: RS over 4 ranks: all there\n'
            'set 2: RS over 4 ranks: rebuilt\n'
            '  rank 2 was lost: 1_of_4_in_2.rs is missing '
            '(3 files, 145 bytes)\n'
            '  rank 11 was lost: 4_of_4_in_2.rs is missing '
            '(1 file, 1 bytes)\n')
    done = run('--verify', 'f')
    assert done.returncode == 3 and done.stdout.decode() == told.replace('rebuilt', 'can be rebuilt'), done
    expect(run('f'), 0, told)
    assert everything('f') == whole
    expect(run('--quiet', 'f'), 0)


def test_all_or_nothing():
    sets = several_sets('XOR', 1, 8, 2)
    fill('f', sets)
    for s, members in zip(sets, ([1], [0, 2])):
        for m in members:
            take('f', s.of_member(m))
    before = everything('f')
    done = run('f')
    assert done.returncode == 1 and everything('f') == before
    assert b'set 0: XOR over 4 ranks: can be rebuilt' in done.stdout, done
    assert b'set 1: XOR over 4 ranks: cannot be rebuilt' in done.stdout
    assert b'set 1 (XOR over 4 ranks) lost members 0 (rank 1), 2 (rank 5); rank 1: ' in done.stderr, done
    # set 0 alone can be rebuilt
    done = run('--set', '0', 'f')
    assert done.returncode == 0 and done.stdout.startswith(b'set 0: XOR over 4 ranks: rebuilt\n  rank 2')
    assert everything('f') == {**before, **sets[0].of_member(1)}


def test_damage_that_only_bytes_show_is_found_before_anything_changes():
    """Set 0 looks as if it could be rebuilt, and so does set 1 until its bytes are read."""
    sets = several_sets('XOR', 1, 12, 2)
    whole = fill('f', sets)
    take('f', sets[0].of_member(1))
    take('f', sets[1].of_member(2))
    name = 'many3/f5'
    assert name in sets[1].of_member(1)
    put('f', {name: flipped(whole[name], 0)})
    before = everything('f')
    done = run('f')
    assert done.returncode == 1 and everything('f') == before, done
    assert f'{name} has checksum'.encode() in done.stderr, done


def test_a_set_of_which_nothing_is_left():
    sets = several_sets('XOR', 1, 8, 2)
    fill('f', sets)
    for m in range(4):
        take('f', sets[1].of_member(m))
    take('f', sets[0].of_member(1))
    before = everything('f')
    for options, state in ([], 'can be rebuilt'), (['--verify'], 'can be rebuilt'):
        done = run(*options, 'f')
        assert done.returncode == 1 and everything('f') == before
        assert f'set 0: XOR over 4 ranks: {state}'.encode() in done.stdout, done
        assert b'1 of 2 sets have no redundancy file in f that is whole' in done.stderr, done
    expect(run('-s', '1', 'f'), 1, '', ['REDUNDANCY_REBUILD_FAILED', ' set 1 '])
    assert run('-s', '0', 'f').returncode == 0


def test_nothing_to_work_on():
    os.mkdir('empty')
    pathlib.Path('file').write_bytes(b'')
    os.symlink('empty', 'link')
    expect(run('empty'), 1, '', ['REDUNDANCY_REBUILD_FAILED', 'redset_rebuild: empty: '])
    expect(run('no'), 1, '', ['no: ', 'No such file or directory'])
    expect(run('file'), 1, '', ['Not a directory'])
    expect(run('link'), 1, '', ['redset_rebuild: link: '])
    s = Set('XOR', 1, {rank: some_files(rank) for rank in range(2)})
    whole = fill('f', [s])
    for m in range(2):
        put('f', {s.name(m): flipped(whole[s.name(m)], 9)})
    expect(run('f'), 1, '', ['f has no redundancy file that is whole: read 1_of_2_in_0.xor'])


def test_redundancy_in_a_folder_below():
    sets = several_sets('RS', 2, 8, 2)
    whole = fill('f', sets, '.scr/ckpt.7/')
    take('f', sets[0].of_member(1, '.scr/ckpt.7/'))
    take('f', sets[1].of_member(3, '.scr/ckpt.7/'))
    expect(run('f'), 1, '', ['f has no redundancy files'])
    assert run('f', '--redundancy', '.scr/ckpt.7').returncode == 0
    assert everything('f') == whole
    for name in ('../f/.scr/ckpt.7', '/tmp', '', '.scr//ckpt.7', 'x' * 5000):
        before = everything('f')
        assert run('f', '-r', name).returncode == 1
        assert everything('f') == before
    expect(run('f', '-r', '.scr/no'), 1, '', ['f/.scr/no', 'No such file'])


def test_in_the_way_of_a_file_in_a_folder_below():
    """Only an entry with the name of a rebuilt file, in its directory, is set aside."""
    files = {rank: {f'ckpt{rank}': bytes_of(rank, 100)} for rank in range(4)}
    s = Set('XOR', 1, {**files, 0: {'r/r': b'a file of the name of its folder'}})
    whole = fill('f', [s], 'r/')
    take('f', s.of_member(2, 'r/'))
    put('f', {f'r/{s.name(2)}/x': b'not ours'})
    assert run('f', '-r', 'r').returncode == 0
    found = everything('f')
    aside = [name for name in found if '.old/' in name]
    assert len(aside) == 1 and aside[0].startswith(f'r/{s.name(2)}.') and found.pop(aside[0]) == b'not ours', aside
    assert found == whole


def test_one_folder_cannot_hold_all():
    files = {rank: {'ckpt': b'state of rank %d' % rank} for rank in range(4)}
    for sets in ([Set('XOR', 1, files)], [Set('XOR', 1, files, i, 2) for i in range(2)]):
        whole = fill('f', sets)
        for options in ([], ['-n']):
            done = run(*options, 'f')
            assert done.returncode == 1 and b'one directory cannot hold the files of all ranks' in done.stderr, done
            assert b'two of them have ckpt' in done.stderr and everything('f') == whole
    other = {0: {'a': b'1'}, 1: {'1_of_2_in_0.xor': b'2'}}
    s = Set('XOR', 1, other)
    put('g', s.of_member(1))
    put('g', {s.name(0): s.of_member(0)[s.name(0)]})
    done = run('g')
    assert b'two of them have 1_of_2_in_0.xor' in done.stderr, done


def test_a_file_is_a_folder_of_another():
    """Valid files are not set aside to rebuild a file whose name contradicts theirs."""
    for first, second, redundancy in (('a', 'a/b', ''), ('a/b', 'a', ''), ('a/b', 'a/b/c/d', ''), ('b', 'b/a', 'r/'),
                                      ('2_of_4_in_0.rs/x', 'b', ''), ('r', 'b', 'r/')):
        files = {0: {'a.b': b'0', first: b'12'}, 1: {'a-b': b'3', second: b'45'}, 2: {}, 3: {'d': b'6'}}
        s = Set('RS', 2, files)
        for lost in ([0], [0, 1]):
            shutil.rmtree('f', ignore_errors=True)
            for m in set(range(4)) - set(lost):
                put('f', s.of_member(m, redundancy))
            before = everything('f')
            for options in ([], ['-n']):
                done = run(*options, *(['-r', 'r'] if redundancy else []), 'f')
                assert done.returncode == 1 and b'one directory cannot hold the files of all ranks' in done.stderr, done
                assert everything('f') == before, (first, second, lost)


def test_files_of_different_encodes():
    old = several_sets('XOR', 1, 8, 2, about='ckpt.6')
    new = several_sets('XOR', 1, 8, 2)
    # the same description, sizes, and files of ranks 2 and 4, but another file of rank 0
    other = {rank: dict(files) for rank, files in new[0].files.items()}
    other[0]['r0.ckpt'] = bytes_of(99, 300)
    alike = Set('XOR', 1, other, 0, 2)
    assert alike.header(2)['CURRENT'] == new[0].header(2)['CURRENT']
    assert alike.header(2)['PARTNER'] == new[0].header(2)['PARTNER']
    for case in range(4):
        fill('f', new)
        if case == 0:  # within a set
            put('f', {old[0].name(2): old[0].of_member(2)[old[0].name(2)]})
        elif case == 1:  # a whole set
            put('f', {old[1].name(m): old[1].of_member(m)[old[1].name(m)] for m in range(4)})
        elif case == 2:  # a member whose lists are those of the other encode
            put('f', {alike.name(2): alike.of_member(2)[alike.name(2)]})
        else:  # another number of ranks
            more = several_sets('RS', 1, 8, 1)[0]
            put('f', {more.name(m): more.of_member(m)[more.name(m)] for m in range(8)})
        take('f', new[0].files[new[0].members[1]])
        before = everything('f')
        for options in ([], ['--verify']):
            done = run(*options, 'f')
            assert done.returncode == 1 and b'different encodes' in done.stderr, (case, done)
            assert case in (0, 2) or b'_in_0.xor and 1_of_' in done.stderr, done
            assert everything('f') == before


def test_hostile_headers():
    """Names that lead elsewhere are invalid; a header with such a name counts as lost."""
    pathlib.Path('outside').write_bytes(b'precious')
    for name in ('../outside', '/dev/null', 'a/../../outside', 'x\ny', '.'):
        s = Set('XOR', 1, {rank: some_files(rank) for rank in range(4)})
        fill('f', [s])
        bad = Set('XOR', 1, {**{rank: some_files(rank) for rank in range(4)}, 2: {name: b'new'}})
        put('f', {bad.name(m): image(bad.header(m)) + bad.data[m] for m in range(4)})
        before = everything('f')
        done = run('f')
        assert done.returncode == 1 and everything('f') == before, done
        assert pathlib.Path('outside').read_bytes() == b'precious'


def test_links_and_folders_in_place_of_files():
    s = Set('RS', 2, {rank: {f'd{rank}/ckpt': bytes_of(rank, 100)} for rank in range(5)})
    whole = fill('f', [s])
    pathlib.Path('outside').mkdir()
    put('outside', {'ckpt': whole['d1/ckpt']})
    take('f', ['d1/ckpt'])
    os.symlink(pathlib.Path('outside/ckpt').absolute(), 'f/d1/ckpt')
    done = run('f')
    assert done.returncode == 0 and b'rank 1 was lost' in done.stdout, done
    assert not os.path.islink('f/d1/ckpt') and everything('f') == whole
    # a directory that is a link is not written through, but set aside, and so is a directory in place of a file
    shutil.rmtree('f/d1')
    os.symlink(pathlib.Path('outside').absolute(), 'f/d1')
    pathlib.Path('outside/ckpt').write_bytes(b'x')
    os.unlink('f/d3/ckpt')
    put('f', {'d3/ckpt/in/it': b'not ours'})
    done = run('f')
    assert done.returncode == 0 and pathlib.Path('outside/ckpt').read_bytes() == b'x', done
    aside = [path for path in pathlib.Path('f').rglob('*.old')]
    assert sorted(path.name.split('.')[0] for path in aside) == ['ckpt', 'd1'], aside
    assert {name: data for name, data in everything('f').items() if '.old' not in name} == whole
    for path in aside:
        if path.is_symlink():
            assert os.readlink(path) == str(pathlib.Path('outside').absolute())
        else:
            assert (path / 'in/it').read_bytes() == b'not ours'


def limited(limit, value):
    return lambda: resource.setrlimit(limit, (value, value))


def test_storage_that_is_full():
    s = Set('RS', 2, {rank: {f'ckpt{rank}': bytes_of(rank, 100000)} for rank in range(5)})
    whole = fill('f', [s])
    for m in (1, 3):
        take('f', s.of_member(m))
    before = everything('f')
    for size in (0, 100, 30000, 99999):
        done = run('f', preexec_fn=limited(resource.RLIMIT_FSIZE, size))
        assert done.returncode == 1 and b'File too large' in done.stderr, (size, done)
        assert everything('f') == before and len(list(pathlib.Path('f').iterdir())) == len(before)
    assert run('f').returncode == 0 and everything('f') == whole


def test_few_descriptors():
    """64 members, a thousand files of one of them, 256 descriptors; and many more members than descriptors."""
    files = {rank: {f'ckpt{rank}': bytes_of(rank, 200)} for rank in range(64)}
    files[5] = {f'many/{i}': b'%d' % i for i in range(1000)}
    s = Set('RS', 3, files)
    whole = fill('f', [s])
    for m in (5, 40, 41):
        take('f', s.of_member(m))
    done = run('f', preexec_fn=limited(resource.RLIMIT_NOFILE, 256))
    assert done.returncode == 0 and everything('f') == whole, done
    s = Set('RS', 2, {rank: {f'ckpt{rank}': b'%d' % rank} for rank in range(200)})
    whole = fill('f', [s])
    for m in (0, 199):
        take('f', s.of_member(m))
    before = everything('f')
    done = run('f', preexec_fn=limited(resource.RLIMIT_NOFILE, 256))
    assert done.returncode == 1 and b'Too many open files' in done.stderr and everything('f') == before, done
    # the command raises the soft limit
    soft = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, 1024))
    assert run('f', preexec_fn=soft).returncode == 0 and everything('f') == whole


def test_other_things_in_the_folder():
    s = Set('XOR', 1, {rank: some_files(rank) for rank in range(4)})
    whole = fill('f', [s])
    strange = {'5_of_4_in_0.xor': b'', '1_of_4_in_0.xor.old': b'', '01_of_4_in_0.xor': b'',
               '1_of_4_in_0.zip': b'', 'notes.txt': b'mine'}
    put('f', strange)
    os.makedirs('f/9_of_9_in_9.rs')
    take('f', s.of_member(2))
    assert run('f').returncode == 0 and everything('f') == {**whole, **strange}


def test_output_fails():
    s = Set('XOR', 1, {rank: some_files(rank) for rank in range(4)})
    fill('f', [s])
    expect_output_fails(['f'], ['--verify', 'f'])
    expect_ends_unread(['--verify', 'f'])
    for call, code in ((run_unread, 0), (run_closed, 1)):
        whole = everything('f')
        take('f', s.of_member(2))
        assert call('f').returncode == code and everything('f') == whole


def test_other_names():
    for name in ('scr_rebuild_xor', 'scr_rebuild_partner', 'scr_rebuild_rs'):
        os.symlink(COMMAND, name)
        alias = pathlib.Path(name).absolute()
        assert run('--help', command=alias).stdout.startswith(f'usage: {name} ['.encode())
        expect(run('no', command=alias), 1, '', [f'{name}: ', 'no: '])


def test_usage():
    os.mkdir('f')
    expect_wrong_usage([], ['f', 'f'], [''], ['--wrong', 'f'], ['-x', 'f'], ['f', '--set'], ['--set=x', 'f'], ['-s', '-1', 'f'],
                       ['--set=', 'f'], ['--set=2147483648', 'f'], ['--verify=1', 'f'], ['--redundancy'])
    expect_documented(6, {'--set': '1', '--redundancy': 'x'})
    expect_well_formed_page()


run_tests(globals())
