// The data elements of the page: base64 of gzip of blocks. See tools/trace/view/table.h.

/** An array of the narrowest type that holds numbers up to a maximum. */
export type Numbers = Uint8Array | Uint16Array | Uint32Array | Float64Array;

export function numbers(length: number, max: number): Numbers {
  if (max <= 0xff) return new Uint8Array(length);
  if (max <= 0xffff) return new Uint16Array(length);
  if (max <= 0xffffffff) return new Uint32Array(length);
  return new Float64Array(length);
}

interface NewerBytes {
  fromBase64?(text: string): Uint8Array<ArrayBuffer>;
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const newer = Uint8Array as unknown as NewerBytes;
  if (newer.fromBase64) return newer.fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** The bytes of one element, which is removed from the page so that its text can be freed. */
export async function takeElement(element: Element): Promise<Uint8Array> {
  const packed = fromBase64(element.textContent ?? '');
  element.remove();
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Takes varints from bytes, one after the other. */
export class Cursor {
  constructor(
    readonly bytes: Uint8Array,
    public at = 0,
  ) {}

  next(): number {
    const { bytes } = this;
    let byte = bytes[this.at++]!;
    if (byte < 0x80) return byte;
    let value = byte & 0x7f;
    let scale = 0x80;
    do {
      byte = bytes[this.at++]!;
      value += (byte & 0x7f) * scale;
      scale *= 0x80;
    } while (byte >= 0x80);
    return value;
  }
}

/** Decodes `count` numbers into `out` from index `first` on. */
export function decodeColumn(bytes: Uint8Array, at: number, out: Numbers, first: number, count: number): void {
  for (let i = first, end = first + count; i < end; i++) {
    let byte = bytes[at++]!;
    if (byte < 0x80) {
      out[i] = byte;
      continue;
    }
    let value = byte & 0x7f;
    byte = bytes[at++]!;
    value |= (byte & 0x7f) << 7;
    if (byte >= 0x80) {
      byte = bytes[at++]!;
      value |= (byte & 0x7f) << 14;
      let scale = 0x200000;
      while (byte >= 0x80) {
        byte = bytes[at++]!;
        value += (byte & 0x7f) * scale;
        scale *= 0x80;
      }
    }
    out[i] = value;
  }
}
