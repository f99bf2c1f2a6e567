// What the clients need, by the name under which rows ask for it. The name in braces is its folder in commands.
import { npmPackages, pythonPackages } from './packages.ts';

export type Installation =
  /** npm packages at exact versions. Their scripts do not run. */
  | { readonly kind: 'npm'; readonly packages: Readonly<Record<string, string>> }
  /** A virtual environment of Python. */
  | { readonly kind: 'python'; readonly packages: readonly string[] }
  /** A folder of `programs/` that is copied and built; `build` is a shell line. */
  | { readonly kind: 'build'; readonly source: string; readonly build: string }
  /** A shell line that fills the folder. */
  | { readonly kind: 'shell'; readonly fill: string }
  /** A program of the system, or a path, by packages of Debian where it is missing and the user is root. */
  | { readonly kind: 'program'; readonly program: string; readonly debian: readonly string[] };

const program = (name: string, ...debian: string[]): Installation => ({
  kind: 'program',
  program: name,
  debian,
});
const rust = (name: string): Installation => ({
  kind: 'build',
  source: 'rust',
  build: `cd ${name} && cargo build --quiet --release --target-dir ../target && cp ../target/release/clients ..`,
});

export const installations: Readonly<Record<string, Installation>> = {
  curl: program('curl', 'curl'),
  git: program('git', 'git'),
  openssl: program('openssl', 'openssl'),
  wget: program('wget', 'wget'),
  aria2: program('aria2c', 'aria2'),
  gh: program('gh', 'gh'),
  gcloud: program('gcloud'),
  apt: program('apt-get'),
  rclone: program('rclone', 'rclone'),
  restic: program('restic', 'restic'),
  s3cmd: program('s3cmd', 's3cmd'),
  kubectl: program('kubectl', 'kubernetes-client'),
  lynx: program('lynx', 'lynx'),
  w3m: program('w3m', 'w3m'),
  go: program('go', 'golang-go'),
  cargo: program('cargo', 'cargo'),
  java: program('javac', 'default-jdk-headless'),
  maven: program('mvn', 'maven'),
  ruby: program('ruby', 'ruby'),
  'ruby-libraries': program(
    '/usr/share/doc/ruby-httparty',
    'ruby-faraday',
    'ruby-rest-client',
    'ruby-excon',
    'ruby-httparty',
  ),
  php: program('php', 'php-cli', 'php-curl'),
  guzzle: program('/usr/share/php/GuzzleHttp/autoload.php', 'php-guzzlehttp-guzzle'),
  perl: program('perl', 'perl'),
  lwp: program('/usr/share/perl5/LWP/Protocol/https.pm', 'libwww-perl', 'liblwp-protocol-https-perl'),
  chromium: program('chromium', 'chromium'),
  certutil: program('certutil', 'libnss3-tools'),

  ...Object.fromEntries(
    Object.entries(npmPackages).map(([name, packages]) => [name, { kind: 'npm', packages } as const]),
  ),
  ...Object.fromEntries(
    Object.entries(pythonPackages).map(([name, packages]) => [name, { kind: 'python', packages } as const]),
  ),

  'go-clients': {
    kind: 'build',
    source: 'go',
    build: 'go mod tidy && go build -o clients .',
  },
  'rust-native-tls': rust('native-tls'),
  'rust-rustls': rust('rustls'),
  'rust-webpki-roots': rust('webpki-roots'),
  'rust-ureq': rust('ureq'),
  'java-clients': {
    kind: 'build',
    source: 'java',
    build:
      'mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib && javac -cp "lib/*" -d . Clients.java',
  },
  // The plugin that the row of Maven runs, and what that needs, in a repository of the suite's own.
  'maven-plugin': {
    kind: 'shell',
    fill: 'mvn -q -B -Dmaven.repo.local=$PWD/repository org.apache.maven.plugins:maven-dependency-plugin:2.8:get -Dartifact=junit:junit:4.13.2 -Dtransitive=false',
  },
  'cargo-home': { kind: 'shell', fill: 'rustup which cargo > path 2>/dev/null || command -v cargo > path' },
};
