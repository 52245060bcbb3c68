# Installs mu @VERSION@ for this user: downloads the archive for this system, compares it with its checksum, and puts the programs into
# %LOCALAPPDATA%\mu\bin. It changes nothing else.
#
#   MU_URL          where the files of the release are
#   MU_INSTALL_DIR  where the programs go
$ErrorActionPreference = 'Stop'
Set-StrictMode -Version Latest

$version = '@VERSION@'
$url = if ($env:MU_URL) { $env:MU_URL } else { '@URL@' }
$into = if ($env:MU_INSTALL_DIR) { $env:MU_INSTALL_DIR } else { Join-Path $env:LOCALAPPDATA 'mu\bin' }
if (-not $url) { throw "it is not known where the files of mu $version are: set MU_URL to the address of the release's files" }
if (-not [Environment]::Is64BitOperatingSystem) { throw 'there is no archive for this system: docs/install.md says how to compile mu' }

$name = "mu-$version-x86_64-pc-windows-msvc"
$work = Join-Path ([IO.Path]::GetTempPath()) ([IO.Path]::GetRandomFileName())
New-Item -ItemType Directory -Path $work | Out-Null
try {
    [Net.ServicePointManager]::SecurityProtocol = [Net.SecurityProtocolType]::Tls12
    Invoke-WebRequest -UseBasicParsing -Uri "$url/SHA256SUMS" -OutFile "$work\SHA256SUMS"
    $line = Get-Content "$work\SHA256SUMS" | Where-Object { ($_ -split '\s+', 2)[1] -eq "$name.zip" }
    if (-not $line) { throw "SHA256SUMS has no $name.zip: docs/install.md says how to compile mu" }
    $expected = ($line -split '\s+', 2)[0]
    Invoke-WebRequest -UseBasicParsing -Uri "$url/$name.zip" -OutFile "$work\$name.zip"
    $found = (Get-FileHash -Algorithm SHA256 "$work\$name.zip").Hash
    if ($found -ne $expected) { throw "$name.zip has the checksum $found, but SHA256SUMS says $expected; nothing was installed" }
    Expand-Archive -Path "$work\$name.zip" -DestinationPath $work
    New-Item -ItemType Directory -Force -Path $into | Out-Null
    foreach ($program in 'mu.exe', 'mu-hub.exe') {
        if (Test-Path "$work\$name\$program") { Copy-Item -Force "$work\$name\$program" "$into\$program" }
    }
} finally {
    Remove-Item -Recurse -Force $work
}
Write-Output "installed mu $version in $into"
if (($env:PATH -split ';') -notcontains $into) { Write-Output "add it to the path: `$env:PATH = `"$into;`$env:PATH`"" }
