// A zip archive of a few small text files, stored without compression: wheels, Go modules and jars are such archives.
import { crc32 } from 'node:zlib';

export function zipOf(files: Readonly<Record<string, string>>): Buffer {
  const locals: Buffer[] = [];
  const centrals: Buffer[] = [];
  let offset = 0;
  for (const [name, text] of Object.entries(files)) {
    const content = Buffer.from(text);
    const fields = fieldsOf(name, content);
    const local = Buffer.concat([u32(0x04034b50), fields, Buffer.from(name), content]);
    centrals.push(
      u32(0x02014b50),
      u16(20),
      fields,
      // Comment, disk, attributes.
      Buffer.alloc(2 + 2 + 2 + 4),
      u32(offset),
      Buffer.from(name),
    );
    locals.push(local);
    offset += local.length;
  }
  const central = Buffer.concat(centrals);
  const count = u16(Object.keys(files).length);
  const end = [u32(0x06054b50), u32(0), count, count, u32(central.length), u32(offset), u16(0)];
  return Buffer.concat([...locals, central, ...end]);
}

/** What both headers of a file have, from the needed version to the lengths. */
function fieldsOf(name: string, content: Buffer): Buffer {
  const size = u32(content.length);
  // 1 January 2025.
  const time = [u16(0), u16(((2025 - 1980) << 9) | (1 << 5) | 1)];
  const lengths = [u16(Buffer.byteLength(name)), u16(0)];
  return Buffer.concat([u16(20), u16(0), u16(0), ...time, u32(crc32(content)), size, size, ...lengths]);
}

function u16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16LE(value);
  return bytes;
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}
