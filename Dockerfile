# The sidecar as a container image: the bundle, the Node that runs it, and an unprivileged user; nothing else.
ARG NODE_IMAGE=node:26.10.0-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /build
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY scripts scripts
COPY src src
RUN npm run build

FROM ${NODE_IMAGE}
LABEL org.opencontainers.image.title="sallyport" \
  org.opencontainers.image.description="A forward proxy that injects credentials, so that sandboxed agents never hold them." \
  org.opencontainers.image.licenses="MIT"
RUN groupadd --gid 10001 sallyport \
  && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin sallyport \
  && install -d -o 10001 -g 10001 -m 0755 /var/lib/sallyport /var/lib/sallyport/public \
  && install -d -o 10001 -g 10001 -m 0700 /var/lib/sallyport/secret /run/sallyport
WORKDIR /opt/sallyport
COPY package.json LICENSE ./
COPY bin bin
COPY --from=build /build/dist dist

# The compile cache is filled during the build, so that a container starts faster. Node has one cache per user, so
# the later user fills it; then it belongs to root, because no process here may change its own code.
ENV NODE_COMPILE_CACHE=/opt/sallyport/cache
# It holds the functions that ran: with rules, also those that read and compile rules.
RUN install -d -o 10001 -g 10001 "$NODE_COMPILE_CACHE" /tmp/warm \
  && echo '{"rules":[{"match_hosts":["*.example.com"],"match_paths":["/v1/*"],"headers":[{"name":"X-Key","type":"plaintext","value":"x"}]}]}' > /tmp/warm/rules.json \
  && setpriv --reuid=10001 --regid=10001 --clear-groups \
    timeout --preserve-status --signal=TERM 3 node bin/sallyport.js proxy --proxy-config /tmp/warm/rules.json --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0 --state-dir /tmp/warm \
  && rm -r /tmp/warm \
  && chown -R 0:0 "$NODE_COMPILE_CACHE"

# The listener accepts clients from private networks only. In a network with public addresses, set
# SALLYPORT_ALLOW_CLIENTS or a token of your own.
# The admin API is a socket in the secret part of the state, so that one writable directory is enough. To share the socket with those who may
# change the rules, and not the state, set SALLYPORT_ADMIN_LISTEN to a path in /run/sallyport.
ENV SALLYPORT_LISTEN=0.0.0.0:3128 \
  SALLYPORT_ADMIN_LISTEN=unix:/var/lib/sallyport/secret/admin.sock \
  SALLYPORT_ALLOW_CLIENTS=127.0.0.0/8,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,::1/128,fc00::/7 \
  SALLYPORT_STATE_DIR=/var/lib/sallyport \
  UV_THREADPOOL_SIZE=64
EXPOSE 3128
USER 10001:10001

HEALTHCHECK --interval=10s --timeout=3s --start-period=5s \
  CMD ["node", "-e", "const [, named = '127.0.0.1', port] = /^(?:(.*):)?(\\d+)$/.exec(process.env.SALLYPORT_LISTEN || '3128'); const host = { '': '127.0.0.1', '0.0.0.0': '127.0.0.1', '[::]': '::1' }[named] ?? named.replace(/[[\\]]/g, ''); require('node:http').get({ host, port, path: '/healthz' }, ({ statusCode }) => process.exit(statusCode === 200 ? 0 : 1)).on('error', () => process.exit(1))"]

ENTRYPOINT ["node", "--disable-sigusr1", "--report-exclude-env", "--disable-proto=delete", "/opt/sallyport/bin/sallyport.js"]
CMD ["proxy"]
