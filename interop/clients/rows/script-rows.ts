// Ruby, PHP and Perl, with the libraries that Debian has.
import type { ClientRow } from '../client-row.ts';

const ruby = (call: string): string => `ruby {programs}/script.rb ${call}`;
const gem = (name: string): string => `ruby -e 'puts Gem::Specification.find_by_name("${name}").version'`;
const php = (call: string): string => `php {programs}/script.php ${call}`;
const debian = (name: string): string => `dpkg-query -W -f '\${Version}' ${name}`;

const rubyLibraries: readonly (readonly [call: string, shown: string, gem: string])[] = [
  ['faraday', 'Ruby faraday', 'faraday'],
  ['rest_client', 'Ruby rest-client', 'rest-client'],
  ['excon', 'Ruby excon', 'excon'],
  ['httparty', 'Ruby httparty', 'httparty'],
];

const rows: readonly Omit<ClientRow, 'group'>[] = [
  {
    ...{ name: 'ruby-net-http', client: 'Ruby net/http', needs: ['ruby'], version: 'ruby --version' },
    ...{ command: ruby('net_http'), requests: 5, streams: true },
  },
  {
    ...{ name: 'ruby-open-uri', client: 'Ruby open-uri', needs: ['ruby'], version: 'ruby --version' },
    ...{ command: ruby('open_uri'), requests: 3 },
  },
  ...rubyLibraries.map(([call, client, name]) => ({
    ...{ name: `ruby-${name}`, client, needs: ['ruby', 'ruby-libraries'], version: gem(name) },
    ...{ command: ruby(call), requests: 4 },
  })),
  {
    ...{ name: 'php-curl', client: 'PHP curl', needs: ['php'], version: 'php --version' },
    ...{ command: php('curl'), requests: 5, streams: true },
  },
  {
    ...{ name: 'php-guzzle', client: 'PHP Guzzle', needs: ['php', 'guzzle'] },
    ...{ version: debian('php-guzzlehttp-guzzle'), command: php('guzzle'), requests: 4 },
  },
  {
    ...{ name: 'php-streams', client: 'PHP `https://` streams', needs: ['php'] },
    ...{ version: 'php --version', command: php('streams'), requests: 4 },
    cure: {
      text: "`stream_context_create(['http' => ['proxy' => ...]])`",
      command: php('streams-proxy'),
    },
  },
  {
    ...{ name: 'perl-tiny', client: 'Perl HTTP::Tiny', needs: ['perl', 'lwp'], requests: 4 },
    version: "perl -MHTTP::Tiny -e 'print HTTP::Tiny->VERSION'",
    command: 'perl {programs}/script.pl tiny',
  },
  {
    ...{ name: 'perl-lwp', client: 'Perl LWP', needs: ['perl', 'lwp'], requests: 4 },
    version: "perl -MLWP::UserAgent -e 'print LWP::UserAgent->VERSION'",
    command: 'perl {programs}/script.pl lwp',
  },
];

export const scriptRows: readonly ClientRow[] = rows.map((row) => ({ ...row, group: 'script' }));
