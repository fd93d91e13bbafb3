# The image of every process: `docker run kapelle processors run …`. The Python that tests run on.
FROM python:3.11-slim AS build
WORKDIR /source
COPY . .
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.11-slim
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir /wheels/*.whl \
    && rm -rf /wheels \
    && useradd --system --uid 10001 kapelle \
    # A volume that is mounted here for the first time takes over the owner.
    && install --directory --owner kapelle /var/lib/kapelle
USER kapelle
WORKDIR /var/lib/kapelle
# SIGTERM is what drains workers and lets processors leave their groups in good order: the command is process 1.
ENTRYPOINT ["kapelle"]
CMD ["--help"]
