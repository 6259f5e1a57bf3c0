# The image of one program, PROGRAM, for any architecture that Go builds for:
#
#   docker buildx build --platform=linux/amd64,linux/arm64 --build-arg PROGRAM=plimsoll-scheduler .
#
# `make images` does this for all programs of the chart, with their version. The build stage runs
# on the architecture of the build machine and cross-compiles.
ARG GO_VERSION=1.26
FROM --platform=$BUILDPLATFORM golang:${GO_VERSION} AS build
WORKDIR /src
ENV GOMODCACHE=/cache/modules GOCACHE=/cache/build
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/cache/modules go mod download
COPY . .
ARG PROGRAM TARGETOS TARGETARCH VERSION COMMIT DATE
RUN --mount=type=cache,target=/cache/modules --mount=type=cache,target=/cache/build \
    GOOS=$TARGETOS GOARCH=$TARGETARCH make bin/$PROGRAM VERSION="$VERSION" COMMIT="$COMMIT" DATE="$DATE" && mv bin/$PROGRAM /program && \
    go run ./hack/licenses ./cmd/$PROGRAM > /LICENSES

FROM scratch
# For load sources and hubs whose certificates are signed by public authorities.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /program /program
# The licenses of the modules in the program require their texts in copies of it.
COPY --from=build /LICENSES /LICENSES
USER 65532:65532
ENTRYPOINT ["/program"]
