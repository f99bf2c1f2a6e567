import { describe, expect, it } from 'vitest';
import { createInfo, infoSchema } from '../../../../src/platform/api/contract/info.ts';

describe('the info', () => {
  it('has the version of the public API, our own, and what each module adds', () => {
    const info = createInfo('1.2.3', [
      { instance_flags: { zstd_compression_enabled: true }, batch_ingest_config: { size_limit: 100 } },
      {},
      { instance_flags: { gzip_body_enabled: true }, batch_ingest_config: { use_multipart_endpoint: true } },
    ]);
    expect(info).toMatchObject({
      version: '0.16.0',
      sallyport: '1.2.3',
      instance_flags: { zstd_compression_enabled: true, gzip_body_enabled: true },
      batch_ingest_config: { size_limit: 100, use_multipart_endpoint: true },
    });
    expect(infoSchema.safeParse(info).error).toBeUndefined();
  });

  it('is refused when two modules contradict each other', () => {
    const config = (size_limit: number) => ({ batch_ingest_config: { size_limit } });
    expect(() => createInfo('1.2.3', [config(1), config(2)])).toThrow('size_limit');
    expect(createInfo('1.2.3', [config(1), config(1)]).batch_ingest_config).toEqual({ size_limit: 1 });
  });
});
