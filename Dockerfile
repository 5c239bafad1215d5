# A gateway that computes on the CPU: docker build -t voxgate .
# docs/operations.md says how to run it. test/deep/image.test.ts builds the image and runs it.

FROM node:24.21.0-bookworm-slim AS build
# `all` compiles for every level of instructions, of which the gateway chooses at the start.
ARG CPU=all
WORKDIR /opt/voxgate
COPY deploy/image.sh deploy/
RUN sh deploy/image.sh build-tools
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY . .
RUN sh deploy/image.sh build "$CPU" /image

FROM node:24.21.0-bookworm-slim
COPY deploy/image.sh /opt/
RUN sh /opt/image.sh run-time
COPY --from=build /image /opt/voxgate
WORKDIR /opt/voxgate
ENV NODE_ENV=production \
    HOME=/var/lib/voxgate \
    SVC_HOST=0.0.0.0 \
    SVC_PORT=8000 \
    SVC_MODEL_DIR=/var/lib/voxgate/models \
    SVC_OBS_LOG_DIR=/var/lib/voxgate/logs \
    SVC_OBS_PAYLOAD_DIR=/var/lib/voxgate/payloads \
    SVC_CRASH_DIR=/var/lib/voxgate/crashes \
    SVC_TMP_DIR=/var/lib/voxgate/tmp
# A number, because Kubernetes cannot tell whether a name is root.
USER 1000:1000
VOLUME /var/lib/voxgate
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
  CMD ["node", "-e", "require('http').get({ socketPath: process.env.SVC_HOST.match(/^unix:(.*)/)?.[1], host: '127.0.0.1', port: process.env.SVC_PORT, path: '/ready' }, ({ statusCode }) => process.exit(statusCode === 200 ? 0 : 1))"]
# As process 1 tini reaps what a dead server leaves, such as its ffmpeg. -s: also where an engine has put an init above it.
ENTRYPOINT ["/usr/bin/tini", "-s", "--"]
CMD ["node", "--max-semi-space-size=1", "dist/main.js", "serve", "--supervised"]
