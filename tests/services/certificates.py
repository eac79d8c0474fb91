"""A certificate authority of one test, with certificates for servers on loopback and for clients."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Certificate:
    """Paths of a certificate and its key, in PEM."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates; `path` is its own."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self.folder = folder
        self.path = folder / f"{name.replace(' ', '-')}.pem"
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        own = self._signed(self._name, self._key, x509.BasicConstraints(ca=True, path_length=0))
        self.path.write_bytes(own.public_bytes(serialization.Encoding.PEM))

    def _signed(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, *extensions: x509.ExtensionType
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(hours=1))
        )
        for extension in extensions:
            builder = builder.add_extension(extension, critical=False)
        return builder.sign(self._key, hashes.SHA256())

    def issue(self, name: str, address: str = "127.0.0.1") -> Certificate:
        """Return a certificate for a server at this address, or a client."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
        made = Certificate(self.folder / f"{name}.pem", self.folder / f"{name}.key")
        made.certificate.write_bytes(
            self._signed(subject, key, names).public_bytes(serialization.Encoding.PEM)
        )
        made.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return made
