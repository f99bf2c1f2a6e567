<?php
// Clients for PHP: `script.php CLIENT`. The same requests as javascript.mjs makes.
const API = 'https://api.test';

function check(bool $isRight, string $what): void
{
    if (!$isRight) {
        fwrite(STDERR, "$what\n");
        exit(1);
    }
}

function try_all(callable $send): void
{
    for ($i = 0; $i < 3; $i++) {
        check(json_decode($send(API . '/echo', null))->method === 'GET', 'method');
    }
    check(json_decode($send(API . '/echo', str_repeat('x', 1000)))->bytes === 1000, 'body');
}

function with_curl(): void
{
    $send = function (string $url, ?string $body): string {
        $curl = curl_init($url);
        curl_setopt($curl, CURLOPT_RETURNTRANSFER, true);
        if ($body !== null) {
            curl_setopt($curl, CURLOPT_POSTFIELDS, $body);
        }
        $result = curl_exec($curl);
        check($result !== false, curl_error($curl));
        return $result;
    };
    try_all($send);
    $times = [];
    $curl = curl_init(API . '/stream');
    curl_setopt($curl, CURLOPT_WRITEFUNCTION, function ($_, string $piece) use (&$times): int {
        $times[] = microtime(true);
        return strlen($piece);
    });
    curl_exec($curl);
    echo 'spread ', round((end($times) - $times[0]) * 1000), "\n";
}

function with_streams(): void
{
    try_all(function (string $url, ?string $body): string {
        $options = $body === null ? [] : ['http' => ['method' => 'POST', 'content' => $body, 'header' => 'Content-Type: text/plain']];
        $result = file_get_contents($url, false, stream_context_create($options + stream_context_get_options(stream_context_get_default())));
        check($result !== false, 'no response');
        return $result;
    });
}

switch ($argv[1]) {
    case 'curl':
        with_curl();
        break;
    case 'streams-proxy':
        $proxy = str_replace('http://', 'tcp://', getenv('HTTPS_PROXY'));
        for ($i = 0; $i < 4; $i++) {
            $context = stream_context_create(['http' => ['proxy' => $proxy]]);
            check(file_get_contents(API . '/echo', false, $context) !== false, 'no response');
        }
        break;
    case 'streams':
        with_streams();
        break;
    case 'guzzle':
        require '/usr/share/php/GuzzleHttp/autoload.php';
        $client = new GuzzleHttp\Client();
        try_all(fn (string $url, ?string $body): string => (string) ($body === null ? $client->get($url) : $client->post($url, ['body' => $body]))->getBody());
        break;
}
