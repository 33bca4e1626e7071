// SPDX-License-Identifier: Apache-2.0
// What weft.wasm asks of its system: files that are bytes in memory, a clock, random numbers, and text that it writes.

export interface MemoryFile {
  name: string;
  bytes: Uint8Array;
}

interface Open {
  file: MemoryFile | null; // null: the directory that holds all of them
  inode: number;
  at: number;
}

const OK = 0;
const BADF = 8;
const INVAL = 28;
const NOENT = 44;
const NOSYS = 52;
const NOTSUP = 58;
const DIRECTORY = 3;
const REGULAR = 4;
const ROOT_FD = 3;

/** The imports of the module. `memory` is set once there is an instance. */
export class Wasi {
  memory: WebAssembly.Memory | null = null;
  stdout: string[] = [];
  stderr: string[] = [];
  private files = new Map<string, MemoryFile>();
  private open = new Map<number, Open>();
  private nextFd = ROOT_FD + 1;
  private decoders = [new TextDecoder(), new TextDecoder()];

  setFiles(files: MemoryFile[]): void {
    this.files = new Map(files.map((file) => [file.name, file]));
  }

  takeOutput(): string {
    const all = this.stdout.join('') + this.decoders[0].decode();
    this.stdout = [];
    return all;
  }

  private view(): DataView {
    return new DataView(this.memory!.buffer);
  }

  private bytes(at: number, n: number): Uint8Array {
    return new Uint8Array(this.memory!.buffer, at, n);
  }

  private path(at: number, n: number): string {
    const text = new TextDecoder().decode(this.bytes(at, n));
    return text.replace(/^(\.?\/)+/, '');
  }

  private stat(to: number, inode: number, type: number, size: number): number {
    const view = this.view();
    this.bytes(to, 64).fill(0);
    view.setBigUint64(to, 1n, true);
    view.setBigUint64(to + 8, BigInt(inode), true);
    view.setUint8(to + 16, type);
    view.setBigUint64(to + 24, 1n, true);
    view.setBigUint64(to + 32, BigInt(size), true);
    return OK;
  }

  private inode(file: MemoryFile): number {
    return [...this.files.values()].indexOf(file) + 2;
  }

  private read(fd: number, vectors: number, n: number, from: number | null, done: number): number {
    const open = this.open.get(fd);
    if (!open || !open.file) return BADF;
    const view = this.view();
    let at = from ?? open.at;
    let sum = 0;
    for (let i = 0; i < n; i++) {
      const to = view.getUint32(vectors + 8 * i, true);
      const room = view.getUint32(vectors + 8 * i + 4, true);
      const piece = open.file.bytes.subarray(at, at + room);
      this.bytes(to, room).set(piece);
      at += piece.length;
      sum += piece.length;
      if (piece.length < room) break;
    }
    if (from === null) open.at = at;
    view.setUint32(done, sum, true);
    return OK;
  }

  imports(progress: (done: number, total: number) => void): WebAssembly.Imports {
    return { wasi_snapshot_preview1: this.calls(), weft: { progress } };
  }

  private calls(): Record<string, WebAssembly.ImportValue> {
    return {
      environ_get: () => OK,
      environ_sizes_get: (count: number, bytes: number) => {
        this.view().setUint32(count, 0, true);
        this.view().setUint32(bytes, 0, true);
        return OK;
      },
      clock_time_get: (_id: number, _precision: bigint, to: number) => {
        this.view().setBigUint64(to, BigInt(Date.now()) * 1000000n, true);
        return OK;
      },
      random_get: (to: number, n: number) => {
        for (let at = 0; at < n; at += 65536) {
          const some = new Uint8Array(Math.min(65536, n - at));
          // Only seeds of hash maps are asked for; node 18 has no `crypto` without being asked to.
          if (globalThis.crypto) globalThis.crypto.getRandomValues(some);
          else for (let i = 0; i < some.length; i++) some[i] = Math.random() * 256;
          this.bytes(to + at, some.length).set(some);
        }
        return OK;
      },
      proc_exit: (code: number) => {
        throw new Error(`weft.wasm ended with status ${code}: ${this.stderr.join('')}`);
      },
      poll_oneoff: () => NOSYS,
      fd_prestat_get: (fd: number, to: number) => {
        if (fd !== ROOT_FD) return BADF;
        this.view().setUint32(to, 0, true);
        this.view().setUint32(to + 4, 1, true);
        return OK;
      },
      fd_prestat_dir_name: (fd: number, to: number, n: number) => {
        if (fd !== ROOT_FD || n < 1) return INVAL;
        this.bytes(to, 1)[0] = 47;
        return OK;
      },
      fd_fdstat_get: (fd: number, to: number) => {
        const open = this.open.get(fd);
        if (!open && fd > ROOT_FD) return BADF;
        this.bytes(to, 24).fill(0);
        this.view().setUint8(to, fd < ROOT_FD ? 2 : open?.file ? REGULAR : DIRECTORY);
        this.view().setBigUint64(to + 8, ~0n & 0xffffffffffffffffn, true);
        this.view().setBigUint64(to + 16, ~0n & 0xffffffffffffffffn, true);
        return OK;
      },
      fd_fdstat_set_flags: () => OK,
      fd_filestat_get: (fd: number, to: number) => {
        const open = this.open.get(fd);
        if (!open) return fd === ROOT_FD ? this.stat(to, 1, DIRECTORY, 0) : BADF;
        return this.stat(to, open.inode, open.file ? REGULAR : DIRECTORY, open.file?.bytes.length ?? 0);
      },
      path_filestat_get: (_fd: number, _flags: number, path: number, n: number, to: number) => {
        const file = this.files.get(this.path(path, n));
        return file ? this.stat(to, this.inode(file), REGULAR, file.bytes.length) : NOENT;
      },
      path_open: (
        _fd: number, _dirflags: number, path: number, n: number, oflags: number, _rights: bigint, _inheriting: bigint,
        _fdflags: number, ret: number,
      ) => {
        const file = this.files.get(this.path(path, n));
        if (oflags & 1) return NOTSUP; // nothing is written here
        if (!file) return NOENT;
        this.open.set(this.nextFd, { file, inode: this.inode(file), at: 0 });
        this.view().setUint32(ret, this.nextFd++, true);
        return OK;
      },
      fd_close: (fd: number) => (this.open.delete(fd) ? OK : BADF),
      fd_pread: (fd: number, vectors: number, n: number, from: bigint, done: number) =>
        this.read(fd, vectors, n, Number(from), done),
      fd_read: (fd: number, vectors: number, n: number, done: number) => this.read(fd, vectors, n, null, done),
      fd_readdir: () => NOTSUP,
      fd_seek: (fd: number, offset: bigint, whence: number, to: number) => {
        const open = this.open.get(fd);
        if (!open || !open.file) return BADF;
        const base = whence === 0 ? 0 : whence === 1 ? open.at : whence === 2 ? open.file.bytes.length : NaN;
        if (Number.isNaN(base)) return INVAL;
        open.at = base + Number(offset);
        this.view().setBigUint64(to, BigInt(open.at), true);
        return OK;
      },
      fd_write: (fd: number, vectors: number, n: number, done: number) => {
        const view = this.view();
        let sum = 0;
        for (let i = 0; i < n; i++) {
          const at = view.getUint32(vectors + 8 * i, true);
          const bytes = view.getUint32(vectors + 8 * i + 4, true);
          const text = this.decoders[fd === 1 ? 0 : 1].decode(this.bytes(at, bytes), { stream: true });
          (fd === 1 ? this.stdout : this.stderr).push(text);
          sum += bytes;
        }
        view.setUint32(done, sum, true);
        return OK;
      },
    };
  }
}
