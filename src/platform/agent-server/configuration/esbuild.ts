// The adapter of esbuild, which is loaded when files of a deployment are bundled. Its service ends with the bundle.
import type { BuildOptions, BuildResult, Message, Plugin } from 'esbuild';
import { isMissing, missingPackage } from '../../../base/packages/optional-package.ts';

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
  const { build, stop } = await loadPackage();
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

async function loadPackage() {
  try {
    return await import('esbuild');
  } catch (error) {
    if (!isMissing(error, 'esbuild')) throw error;
    throw missingPackage('esbuild', { need: 'An agent server' }, error);
  }
}
