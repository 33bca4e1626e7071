module weft/test/otlp

go 1.25.0

require go.opentelemetry.io/collector/receiver/otlpreceiver v0.164.0
