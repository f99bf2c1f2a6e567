// The adapter of esbuild, which is loaded when files of a deployment are bundled. Its service ends with the bundle.
import type { BuildOptions, BuildResult, Message, Plugin } from 'esbuild';

export type { BuildOptions, Message, Plugin };

export type Built = Pick<BuildResult, 'warnings'> & {
  /** The entry points by the path of their output. */
  readonly outputs: Readonly<
    Record<string, { readonly entryPoint?: string; readonly exports: readonly string[] }>
  >;
};

/** Errors are those of the sources; anything else throws. */
export async function buildFiles(
  options: BuildOptions,
): Promise<Built | { readonly errors: readonly Message[] }> {
  const { build, stop } = await import('esbuild');
  try {
    const { warnings, metafile } = await build({ ...options, metafile: true, logLevel: 'silent' });
    return { warnings, outputs: metafile.outputs };
  } catch (error) {
    const { errors } = error as { readonly errors?: readonly Message[] };
    if (errors === undefined) throw error;
    return { errors };
  } finally {
    await stop();
  }
}
