// SPDX-License-Identifier: Apache-2.0
// Where the files of a trace come from: `weft view`, which answers HTTP, or the page itself (weft view --html).
import type { Answer, Question } from '../api.ts';
import type { MemoryFile } from './wasi.ts';

export interface FileInfo {
  id: number; // stays as files come and go
  name: string;
  bytes: number;
  version: string; // changes when the content does
  events: number;
  fromNs: number; // relative to the earliest
  toNs: number;
  live: boolean; // is being written
}
export interface Manifest {
  files: FileInfo[];
  live: boolean; // more may come
  version: string;
}

export interface Source {
  live: boolean;
  wasm(): Promise<WebAssembly.Module>;
  manifest(): Promise<Manifest>;
  /** The file, of which the first `have` bytes are known where it only grew. */
  file(info: FileInfo, have?: Uint8Array): Promise<MemoryFile>;
  names(): Promise<Uint8Array>;
  /** What only a command that runs can answer. */
  query?(sql: string): Promise<Answer>;
  questions?(): Promise<Question[]>;
}

async function get(path: string, headers: Record<string, string> = {}): Promise<Response> {
  const answer = await fetch(path, { headers, cache: 'no-store' });
  if (!answer.ok) {
    throw new Error(
      answer.status === 403
        ? 'weft view does not know this page any more: start it again and open the address that it prints'
        : `${path}: ${answer.status} ${await answer.text()}`,
    );
  }
  return answer;
}

class HttpSource implements Source {
  live = true;

  async wasm(): Promise<WebAssembly.Module> {
    return WebAssembly.compileStreaming(get('weft.wasm'));
  }

  async manifest(): Promise<Manifest> {
    return (await get('api/files')).json() as Promise<Manifest>;
  }

  async file(info: FileInfo, have?: Uint8Array): Promise<MemoryFile> {
    const path = `api/file/${info.id}`;
    if (have && have.length < info.bytes) {
      const answer = await get(path, { Range: `bytes=${have.length}-` });
      if (answer.status === 206) {
        const more = new Uint8Array(await answer.arrayBuffer());
        const bytes = new Uint8Array(have.length + more.length);
        bytes.set(have);
        bytes.set(more, have.length);
        return { name: info.name, bytes };
      }
    }
    return { name: info.name, bytes: new Uint8Array(await (await get(path)).arrayBuffer()) };
  }

  async names(): Promise<Uint8Array> {
    return new Uint8Array(await (await get('api/names')).arrayBuffer());
  }

  async query(sql: string): Promise<Answer> {
    const reply = await fetch('api/query', { method: 'POST', body: sql, cache: 'no-store' });
    if (!reply.ok) throw new Error((await reply.text()).trim());
    const answer = (await reply.json()) as Answer | { error: string };
    if ('error' in answer) throw new Error(answer.error);
    return answer;
  }

  async questions(): Promise<Question[]> {
    return (await get('api/questions')).json() as Promise<Question[]>;
  }
}

/** Base64 in an element that is no script, gzipped where it says so. */
async function inline(element: Element): Promise<Uint8Array> {
  const text = atob((element.textContent ?? '').trim());
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  element.textContent = ''; // the text is as large as the trace
  if (element.getAttribute('data-encoding') !== 'gzip') return bytes;
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

class InlineSource implements Source {
  live = false;

  async wasm(): Promise<WebAssembly.Module> {
    return WebAssembly.compile((await inline(document.getElementById('weft-wasm')!)) as BufferSource);
  }

  async manifest(): Promise<Manifest> {
    return JSON.parse(document.getElementById('weft-files')!.textContent!) as Manifest;
  }

  async file(info: FileInfo): Promise<MemoryFile> {
    return { name: info.name, bytes: await inline(document.getElementById(`weft-file-${info.id}`)!) };
  }

  async names(): Promise<Uint8Array> {
    return inline(document.getElementById('weft-names')!);
  }
}

export function pageSource(): Source {
  return document.getElementById('weft-wasm') ? new InlineSource() : new HttpSource();
}
