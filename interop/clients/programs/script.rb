# Clients for Ruby: `script.rb CLIENT`. The same requests as javascript.mjs makes.
require 'json'
require 'uri'

API = 'https://api.test'
BODY = 'x' * 1000

def measure(times) = puts("spread #{((times.last - times.first) * 1000).round}")
def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

def try_all(get, post)
  3.times { raise 'method' unless JSON.parse(get.call("#{API}/echo"))['method'] == 'GET' }
  raise 'body' unless JSON.parse(post.call("#{API}/echo", BODY))['bytes'] == BODY.length
end

def net_http
  require 'net/http'
  http = Net::HTTP.start('api.test', 443, use_ssl: true)
  try_all(->(_) { http.get('/echo').body }, ->(_, body) { http.post('/echo', body).body })
  times = []
  http.request(Net::HTTP::Get.new('/stream')) { |response| response.read_body { times << now } }
  measure(times)
end

def open_uri
  require 'open-uri'
  3.times { raise 'method' unless JSON.parse(URI.open("#{API}/echo").read)['method'] == 'GET' }
end

def faraday
  require 'faraday'
  try_all(->(url) { Faraday.get(url).body }, ->(url, body) { Faraday.post(url, body).body })
end

def rest_client
  require 'rest-client'
  try_all(->(url) { RestClient.get(url).body }, ->(url, body) { RestClient.post(url, body).body })
end

def excon
  require 'excon'
  try_all(->(url) { Excon.get(url).body }, ->(url, body) { Excon.post(url, body: body).body })
end

def httparty
  require 'httparty'
  try_all(->(url) { HTTParty.get(url).body }, ->(url, body) { HTTParty.post(url, body: body).body })
end

send(ARGV.fetch(0))
